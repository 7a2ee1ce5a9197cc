"""Requests about transactions: each is a step of the transactions core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from broker.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from broker.server.declaration import Declaration, Slicing
from broker.server.guards import PASS, Acl, Guard, Narrowed, Refused, Verdict, on_each, only
from broker.server.handlers.add_partitions_to_txn import ADD_PARTITIONS

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.access import Access
    from broker.server.declaration import SliceHandler
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources

WRITE_TRANSACTION = Acl(Operation.WRITE, ResourceType.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTION = Acl(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
# Transactional ids per slice. A transaction may have ten thousand partitions.
SLICE = 10


def submit(request: Message, exchange: Exchange, resources: Resources) -> None:
    resources.transactions.submit(request, exchange)


def submit_of_producer(
    request: AddOffsetsToTxnRequest | EndTxnRequest, exchange: Exchange, resources: Resources
) -> None:
    exchange.connection.session.client.use_transactional_id(request.transactional_id)
    submit(request, exchange, resources)


def describe(request: DescribeTransactionsRequest, exchange: Exchange, resources: Resources) -> SliceHandler:
    return lambda part, answerable: resources.transactions.submit(part, answerable)


# ---- guards


def _check_offsets(
    request: AddOffsetsToTxnRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    if not access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return Refused(AddOffsetsToTxnResponse(error_code=DENIED))
    if not access.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        return Refused(AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    return PASS


def _check_end(request: EndTxnRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    if access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return PASS
    return Refused(EndTxnResponse(error_code=DENIED))


def _check_list(
    request: ListTransactionsRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    visible = access.of(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)

    def complete(response: ListTransactionsResponse) -> ListTransactionsResponse:
        rows: Any = response.transaction_states
        response.transaction_states = only(rows, lambda row: visible[row.transactional_id])
        return response

    return Narrowed(request, complete)


def _check_describe(
    request: DescribeTransactionsRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    verdict = _describe.check(request, access, exchange, resources)
    visible = access.of(Operation.DESCRIBE, ResourceType.TOPIC)

    def complete(response: DescribeTransactionsResponse) -> Any:
        for row in response.transaction_states:
            row.topics = [topic for topic in row.topics if visible[topic.topic]]
        return verdict.complete(response) if isinstance(verdict, Narrowed) else response

    return Narrowed(request, complete)


def _itself(transactional_id: str) -> str:
    return transactional_id


def _not_described(transactional_id: str) -> DescribeTransactionsResponse.Transaction:
    return DescribeTransactionsResponse.Transaction(
        error_code=DENIED,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=[],
    )


_describe = on_each(DESCRIBE_TRANSACTION, "transactional_ids", _itself, "transaction_states", _not_described)
REQUESTS = (
    ADD_PARTITIONS,
    Declaration(
        AddOffsetsToTxnRequest,
        submit_of_producer,
        Guard(_check_offsets, WRITE_TRANSACTION, Acl(Operation.READ, ResourceType.GROUP)),
    ),
    Declaration(EndTxnRequest, submit_of_producer, Guard(_check_end, WRITE_TRANSACTION)),
    Declaration(
        DescribeTransactionsRequest,
        describe,
        Guard(_check_describe, DESCRIBE_TRANSACTION, Acl(Operation.DESCRIBE, ResourceType.TOPIC)),
        Slicing("transactional_ids", "transaction_states", _itself, SLICE),
    ),
    Declaration(ListTransactionsRequest, submit, Guard(_check_list, DESCRIBE_TRANSACTION)),
)
