"""Fetch: read record batches, and wait while there are too few. Every fetch is a full fetch.

Sessions (KIP-227) are refused as Kafka refuses them when its cache is full: the answer to a full fetch has session id 0.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from broker.light_dataclasses import dataclass, field
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.server.declaration import Declaration
from broker.server.guards import PASS, Acl, Guard, Refused, Verdict, on_each_topic
from broker.server.leader_epoch import epoch_error
from broker.storage import DamageError, FileSlice, OutOfDescriptors

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.exchange import Answerable, Exchange
    from broker.server.fetch_waiters import PartitionKey
    from broker.server.resources import Resources
    from broker.storage import PartitionLog

TOPIC_IDS_SINCE = 13
FULL_FETCH_EPOCHS = (0, -1)
READ_COMMITTED = 1
# How long one attempt reads before other clients get their turn; rows of a topic take long.
TURN_S = 0.01

logger = logging.getLogger("broker.server")


def fetch(request: FetchRequest, exchange: Exchange, resources: Resources) -> FetchResponse | None:
    if request.session_epoch not in FULL_FETCH_EPOCHS:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    reading = Reading(request, exchange, resources)
    if reading.attempt(final=request.max_wait_ms <= 0):
        return None
    exchange.abandon = lambda: resources.waiters.drop(reading)
    resources.waiters.park(reading, request.max_wait_ms)
    return None


@dataclass(slots=True)
class Found:
    """What one attempt read, and when it should end."""

    until_s: float
    topics: list[FetchResponse.Topic] = field(default_factory=list)
    bytes_read: int = 0
    readable: int = 0
    failed: bool = False
    is_cut: bool = False  # there is more, which would take too long to read now


class Reading:
    """One fetch, attempted until it reads enough."""

    def __init__(self, request: FetchRequest, exchange: Exchange, resources: Resources) -> None:
        self._request = request
        self._exchange = exchange
        self._resources = resources
        self._by_id = exchange.version >= TOPIC_IDS_SINCE
        self._committed = request.isolation_level == READ_COMMITTED
        self._max_bytes = min(request.max_bytes, resources.config.fetch_max_bytes)
        if exchange.work is not None:
            self._max_bytes = min(self._max_bytes, resources.throttle.most_fetched(exchange))
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._keys: list[PartitionKey] = []

    @property
    def keys(self) -> Iterable[PartitionKey]:
        return self._keys

    def attempt(self, *, final: bool) -> bool:
        """Answer if there is enough, an error to report or nothing to wait for; always if `final`. Whether it answered."""
        found = self._read()
        has_all = not found.failed and not found.is_cut
        if not final and found.readable and has_all and found.bytes_read < self._min_bytes:
            return False
        self._exchange.answer(FetchResponse(responses=found.topics))
        return True

    def abort(self) -> None:
        self._exchange.connection.abort()

    def _read(self) -> Found:
        found = Found(self._exchange.connection.now_s + TURN_S)
        self._keys = []
        for asked in self._request.topics:
            topic = self._resources.topic(asked.topic, asked.topic_id, self._by_id)
            rows = []
            for partition in asked.partitions:
                log = self._resources.log.partition(topic.name, partition.partition) if topic else None
                if topic is None or log is None:
                    unknown_id = topic is None and self._by_id
                    code = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    rows.append(_error(partition.partition, code))
                else:
                    found.readable += 1
                    self._keys.append((topic.name, partition.partition))
                    rows.append(self._read_partition(log, partition, found))
            found.topics.append(FetchResponse.Topic(topic=asked.topic, topic_id=asked.topic_id, partitions=rows))
        return found

    def _read_partition(
        self, log: PartitionLog, asked: FetchRequest.Partition, found: Found
    ) -> FetchResponse.Partition:
        refusal = epoch_error(asked.current_leader_epoch)
        records: Any = None
        if refusal is None:
            max_bytes = max(0, min(asked.partition_max_bytes, self._max_bytes - found.bytes_read))
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


def _check(request: FetchRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    replica_id = request.replica_state.replica_id if request.replica_state is not None else request.replica_id
    if replica_id < 0:
        return _topics.check(request, access, exchange, resources)
    if access.allows_on_cluster(Operation.CLUSTER_ACTION):
        return PASS
    return Refused(FetchResponse(responses=list(map(_denied, request.topics))))


def _denied(topic: FetchRequest.Topic) -> FetchResponse.Topic:
    return FetchResponse.Topic(
        topic=topic.topic,
        topic_id=topic.topic_id,
        partitions=[_error(asked.partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for asked in topic.partitions],
    )


_topics = on_each_topic(
    Operation.READ, "topics", lambda topic: topic.topic, "responses", _denied, ids_since=TOPIC_IDS_SINCE
)
REQUESTS = (
    Declaration(FetchRequest, fetch, Guard(_check, *_topics.acls, Acl(Operation.CLUSTER_ACTION, ResourceType.CLUSTER))),
)
