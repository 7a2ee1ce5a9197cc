"""Fetch: read record batches, and wait while there are too few. `broker.cores.fetch_sessions` has the sessions of consumers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from broker.cores.fetch_sessions.contexts import Sessionless, begin
from broker.cores.fetch_sessions.session import FINAL_EPOCH, NO_SESSION
from broker.light_dataclasses import dataclass, field
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.server.declaration import Declaration
from broker.server.guards import Acl, in_handler
from broker.server.leader_epoch import epoch_error
from broker.storage import LEADER_EPOCH, DamageError, FileSlice, OutOfDescriptors

if TYPE_CHECKING:
    from broker.cores.fetch_sessions.contexts import Context, Row
    from broker.cores.fetch_sessions.session import AskedPartition, AskedTopic
    from broker.server.exchange import Exchange
    from broker.server.fetch_waiters import PartitionKey
    from broker.server.resources import Resources
    from broker.storage import PartitionLog

TOPIC_IDS_SINCE = 13
READ_COMMITTED = 1
# How long one attempt reads before other clients get their turn; rows of a topic take long.
TURN_S = 0.01

logger = logging.getLogger("broker.server")


def fetch(request: FetchRequest, exchange: Exchange, resources: Resources) -> FetchResponse | None:
    context: Context | ErrorCode
    if request.session_epoch == FINAL_EPOCH and request.session_id == NO_SESSION:
        context = Sessionless(request)
    else:
        connection = exchange.connection
        sessions, owner = resources.fetch_sessions(), connection.session.principal
        context = begin(request, exchange.version, sessions, owner, lambda: int(connection.now_s * 1000))
        if isinstance(context, ErrorCode):
            return FetchResponse(error_code=context, responses=[])
    reading = Reading(request, context, exchange, resources)
    if reading.attempt(final=request.max_wait_ms <= 0):
        return None
    exchange.abandon = lambda: resources.waiters.drop(reading)
    resources.waiters.park(reading, request.max_wait_ms)
    return None


@dataclass(slots=True)
class Found:
    """What one attempt read, and when it should end."""

    until_s: float
    rows: list[Row] = field(default_factory=list)
    # Of partitions that are not read at all. As in Kafka they come last, and do not end the wait for the others.
    refused: list[Row] = field(default_factory=list)
    bytes_read: int = 0
    failed: bool = False
    is_cut: bool = False  # there is more, which is in another file or would take too long to read now


class Reading:
    """One fetch, attempted until it reads enough."""

    def __init__(self, request: FetchRequest, context: Context, exchange: Exchange, resources: Resources) -> None:
        self._context = context
        self._asked = context.asked()
        self._exchange = exchange
        self._resources = resources
        self._by_id = exchange.version >= TOPIC_IDS_SINCE
        self._committed = request.isolation_level == READ_COMMITTED
        self._request = request
        self._max_bytes = min(request.max_bytes, resources.config.fetch_max_bytes)
        if exchange.work is not None:
            self._max_bytes = min(self._max_bytes, resources.throttle.most_fetched(exchange))
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._rows: list[Row] = []

    @property
    def keys(self) -> Iterable[PartitionKey]:
        return [(topic.topic, asked.partition) for topic, asked, _ in self._rows]

    def attempt(self, *, final: bool) -> bool:
        """Answer if there is enough, an error to report or nothing to wait for; always if `final`. Whether it answered."""
        found = self._read()
        has_all = not found.failed and not found.is_cut
        if not final and found.rows and has_all and found.bytes_read < self._min_bytes:
            self._rows = found.rows
            return False
        response = self._context.response(found.rows + found.refused if found.refused else found.rows)
        if self._exchange.work is None:
            self._context.sent()
        else:
            # Whether the answer is throttled depends on its size.
            self._exchange.work.fetch = self._context
        self._exchange.answer(response)
        return True

    def abort(self) -> None:
        self._exchange.connection.abort()

    def _read(self) -> Found:
        found = Found(self._exchange.connection.now_s + TURN_S)
        partition_of = self._resources.log.partition
        # The usual case is short: it runs for every fetch.
        refusal_of = self._refusals() if self._by_id or self._resources.authorizer is not None else None
        last: AskedTopic | None = None
        refusal: ErrorCode | None = None
        for topic, asked in self._asked:
            if topic is not last:
                last, refusal = topic, refusal_of(topic) if refusal_of is not None else None
            log = partition_of(topic.topic, asked.partition) if refusal is None else None
            if log is not None:
                found.rows.append((topic, asked, self._read_partition(log, asked, found)))
            elif refusal is ErrorCode.INCONSISTENT_TOPIC_ID:
                found.failed = True
                found.rows.append((topic, asked, _error(asked.partition, refusal)))
            else:
                code = refusal or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                found.refused.append((topic, asked, _error(asked.partition, code)))
        return found

    def _refusals(self) -> Callable[[AskedTopic], ErrorCode | None] | None:
        """What says why a topic cannot be read; for one that can, it returns None."""
        name = self._name if self._by_id else None
        if self._resources.authorizer is None:
            return name
        access = self._resources.access(self._exchange.connection)
        request = self._request
        replica_id = request.replica_state.replica_id if request.replica_state is not None else request.replica_id
        if replica_id >= 0:
            is_allowed = access.allows_on_cluster(Operation.CLUSTER_ACTION)
            return name if is_allowed else lambda topic: ErrorCode.TOPIC_AUTHORIZATION_FAILED
        may = access.of(Operation.READ, ResourceType.TOPIC)

        def refusal(topic: AskedTopic) -> ErrorCode | None:
            code = name(topic) if name is not None else None
            is_hidden = code is not ErrorCode.UNKNOWN_TOPIC_ID and not may[topic.topic]
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED if is_hidden else code

        return refusal

    def _name(self, topic: AskedTopic) -> ErrorCode | None:
        """Give a topic that is asked for by id its name. A session remembers the name of a topic that was deleted since."""
        log = self._resources.log
        found = log.topic_by_id(topic.topic_id)
        if found is not None:
            topic.topic = found.name
            return None
        if not topic.topic:
            return ErrorCode.UNKNOWN_TOPIC_ID
        is_replaced = topic.topic in log.topics
        return ErrorCode.INCONSISTENT_TOPIC_ID if is_replaced else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _read_partition(self, log: PartitionLog, asked: AskedPartition, found: Found) -> FetchResponse.Partition:
        refusal = epoch_error(asked.current_leader_epoch) if asked.current_leader_epoch != LEADER_EPOCH else None
        records: Any = None
        if refusal is None:
            max_bytes = self._max_bytes - found.bytes_read
            if asked.partition_max_bytes < max_bytes:
                max_bytes = asked.partition_max_bytes
            if max_bytes < 0:
                max_bytes = 0
            if found.bytes_read and self._exchange.connection.now_s > found.until_s:
                # As if the limit were reached: clients ask for the other partitions first next time.
                max_bytes = 0
                found.is_cut = True
            try:
                # `at_least_one`: a batch larger than the client's limits must be readable.
                records = log.read(
                    asked.fetch_offset, max_bytes, at_least_one=found.bytes_read == 0, committed=self._committed
                )
            except DamageError as error:
                # Clients report this code to their users and do not retry.
                logger.error("%s", error)
                refusal = ErrorCode.CORRUPT_MESSAGE
            except OutOfDescriptors:
                refusal = ErrorCode.KAFKA_STORAGE_ERROR
        if records is None:
            found.failed = True
            return _error(asked.partition, refusal or ErrorCode.OFFSET_OUT_OF_RANGE)
        found.bytes_read += len(records)
        found.is_cut |= type(records) is FileSlice and records.is_cut
        return FetchResponse.Partition(
            partition_index=asked.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=_aborted(log, asked.fetch_offset, records) if self._committed else None,
            records=records,
        )


def _aborted(log: PartitionLog, offset: int, records: bytes | FileSlice) -> list[FetchResponse.AbortedTransaction]:
    """The aborted transactions of which these records may have some. Those kept as rows have none."""
    if type(records) is not FileSlice:
        return []
    return [
        FetchResponse.AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
        for aborted in log.aborted_transactions(offset, records.end_offset)
    ]


def _error(index: int, code: ErrorCode) -> FetchResponse.Partition:
    return FetchResponse.Partition(partition_index=index, error_code=code, high_watermark=-1, records=b"")


REQUESTS = (
    # The partitions of a session are not in the request.
    Declaration(
        FetchRequest,
        fetch,
        in_handler(Acl(Operation.READ, ResourceType.TOPIC), Acl(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)),
    ),
)
