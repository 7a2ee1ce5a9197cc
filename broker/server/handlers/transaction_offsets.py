"""TxnOffsetCommit: offsets of a group that become committed with the transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from broker.server.declaration import Declaration
from broker.server.guards import PASS, Acl, Guard, Narrowed, Refused, Verdict, split
from broker.storage import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.server.access import Access
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources

# KIP-890: the first version with TRANSACTION_ABORTABLE, and the first that adds the group to the transaction.
ABORTABLE_SINCE, ADDS_SINCE = 4, 5


def commit(request: TxnOffsetCommitRequest, exchange: Exchange, resources: Resources) -> TxnOffsetCommitResponse | None:
    if not request.group_id:
        return _unverified(request, ErrorCode.INVALID_GROUP_ID, resources)
    if not any(_exists(topic, resources) for topic in request.topics):
        return _refused(request.topics, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def run() -> None:
        # Between verification and commit, the transaction must not end.
        error = _verify(request, exchange.version, resources)
        if error:
            exchange.answer(_unverified(request, error, resources))
        else:
            resources.groups.runner.submit(request, exchange)

    resources.groups.when_loaded((request.group_id,), run)
    return None


def _exists(topic: TxnOffsetCommitRequest.Topic, resources: Resources) -> bool:
    return any(_partition_exists(topic.name, row.partition_index, resources) for row in topic.partitions)


def _partition_exists(topic: str, index: int, resources: Resources) -> bool:
    found = resources.log.topics.get(topic)
    return found is not None and 0 <= index < found.partition_count


def _verify(request: TxnOffsetCommitRequest, version: int, resources: Resources) -> ErrorCode:
    """Why the group is not part of the producer's transaction; NONE if it is."""
    partition = OFFSETS_TOPIC, resources.groups.partition_of(request.group_id)
    errors = resources.transactions.verify(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        (partition,),
        add=version >= ADDS_SINCE,
    )
    error = errors.get(partition, ErrorCode.NONE)
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return error


def _unverified(request: TxnOffsetCommitRequest, error: ErrorCode, resources: Resources) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.Topic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.Partition(
                        partition_index=row.partition_index,
                        error_code=error
                        if _partition_exists(topic.name, row.partition_index, resources)
                        else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    )
                    for row in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _check(request: TxnOffsetCommitRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    if not access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return Refused(_refused(request.topics, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not access.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        return Refused(_refused(request.topics, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    may = access.of(Operation.READ, ResourceType.TOPIC)
    allowed, denied = split(request.topics, lambda topic: may[topic.name])
    if not denied:
        return PASS
    rows = _refused(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not allowed:
        return Refused(rows)
    request.topics = allowed

    def complete(response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
        response.topics += rows.topics
        return response

    return Narrowed(request, complete)


def _refused(topics: Iterable[TxnOffsetCommitRequest.Topic], error: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.Topic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.Partition(partition_index=row.partition_index, error_code=error)
                    for row in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


REQUESTS = (
    Declaration(
        TxnOffsetCommitRequest,
        commit,
        Guard(
            _check,
            Acl(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
            Acl(Operation.READ, ResourceType.GROUP),
            Acl(Operation.READ, ResourceType.TOPIC),
        ),
        loads=lambda request: (request.group_id,),
    ),
)
