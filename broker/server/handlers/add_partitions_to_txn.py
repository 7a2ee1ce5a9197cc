"""AddPartitionsToTxn: from clients up to version 3, for one transaction; from brokers since version 4, for several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from broker.server.declaration import Declaration
from broker.server.exchange import complete_first
from broker.server.guards import Acl, in_handler

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

Topic = AddPartitionsToTxnRequest.Topic
Transaction = AddPartitionsToTxnRequest.Transaction
TopicResult = AddPartitionsToTxnResponse.Topic
TransactionResult = AddPartitionsToTxnResponse.Transaction
BATCHES_SINCE = 4


def add_partitions(
    request: AddPartitionsToTxnRequest, exchange: Exchange, resources: Resources
) -> AddPartitionsToTxnResponse | None:
    access = resources.access(exchange.connection)
    if exchange.version >= BATCHES_SINCE:
        return _add_batches(request, exchange, resources, access)
    topics = request.v3_and_below_topics
    name = request.v3_and_below_transactional_id
    if not access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        refused = [_all(topic, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) for topic in topics]
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=refused)
    failed = _failed(topics, resources, access)
    if failed is not None:
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=failed)
    resources.transactions.submit(request, exchange)
    return None


def _add_batches(
    request: AddPartitionsToTxnRequest, exchange: Exchange, resources: Resources, access: Access
) -> AddPartitionsToTxnResponse | None:
    if not access.allows_on_cluster(Operation.CLUSTER_ACTION):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results: list[TransactionResult] = []
    passed: list[Transaction] = []
    for transaction in request.transactions:
        failed = _failed(transaction.topics, resources, None)
        if failed is None:
            passed.append(transaction)
        else:
            results.append(TransactionResult(transactional_id=transaction.transactional_id, topic_results=failed))
    if not passed:
        return AddPartitionsToTxnResponse(results_by_transaction=results)

    def complete(response: AddPartitionsToTxnResponse) -> AddPartitionsToTxnResponse:
        response.results_by_transaction += results
        return response

    request.transactions = passed
    complete_first(exchange, complete)
    resources.transactions.submit(request, exchange)
    return None


def _failed(topics: Iterable[Topic], resources: Resources, access: Access | None) -> list[TopicResult] | None:
    """The answer if one of the partitions cannot be added; then none is. Without `access`, everything is allowed."""
    checked = [(topic, _errors(topic, resources, access)) for topic in topics]
    if not any(any(errors) for _, errors in checked):
        return None
    return [
        _result(topic, [error or ErrorCode.OPERATION_NOT_ATTEMPTED for error in errors]) for topic, errors in checked
    ]


def _errors(topic: Topic, resources: Resources, access: Access | None) -> list[ErrorCode]:
    found = resources.log.topics.get(topic.name)
    if access is not None:
        # Like Kafka, answer clients that they may not write to internal topics.
        is_internal = found is not None and found.internal
        if is_internal or not access.allows(Operation.WRITE, ResourceType.TOPIC, topic.name):
            return [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(topic.partitions)
    count = 0 if found is None else found.partition_count
    return [
        ErrorCode.NONE if 0 <= index < count else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for index in topic.partitions
    ]


def _all(topic: Topic, error: ErrorCode) -> TopicResult:
    return _result(topic, [error] * len(topic.partitions))


def _result(topic: Topic, errors: Iterable[ErrorCode]) -> TopicResult:
    return TopicResult(
        name=topic.name,
        results_by_partition=[
            AddPartitionsToTxnResponse.Partition(partition_index=index, partition_error_code=error)
            for index, error in zip(topic.partitions, errors, strict=True)
        ],
    )


ADD_PARTITIONS = Declaration(
    AddPartitionsToTxnRequest,
    add_partitions,
    in_handler(
        Acl(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        Acl(Operation.WRITE, ResourceType.TOPIC),
        Acl(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    ),
)
