"""ShareFetch (KIP-932): acquire records for a member of a share group.

`broker.cores.share` has what they mean; `share_runner.py` makes it durable. A client that disconnects loses its session, and what it has
acquired is available again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from broker.cores.share.acquisition import AbortedFrom, Acquired, FetchedBatch, Wanted
from broker.cores.share.partition import Refusal, SharePartition
from broker.cores.share.sessions import (
    FINAL_EPOCH,
    Begun,
    SessionKey,
    SessionPartition,
    TopicIdPartition,
    rotated,
    to_answer,
)
from broker.light_named_tuples import NamedTuple
from broker.protocol.control_records import read_marker
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from broker.protocol.record_batch import BatchHeader, batches
from broker.server.declaration import Declaration
from broker.server.features import has_share_groups
from broker.server.handlers.share_acknowledge import READ_TOPIC, TOPIC_DENIED, acknowledged, of_group
from broker.storage import DamageError, FileSlice, OutOfDescriptors

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Exchange
    from broker.server.fetch_waiters import PartitionKey
    from broker.server.resources import Resources
    from broker.server.share_runner import ShareRunner
    from broker.storage import PartitionLog

# A member acquires some hundred records at once. What is read beyond them is read again, so reads begin small and grow.
FIRST_BYTES, MOST_BYTES = 128 << 10, 4 << 20
_GROWTH = 4

logger = logging.getLogger("broker.server")

Row: TypeAlias = ShareFetchResponse.Partition
Rows: TypeAlias = "list[tuple[TopicIdPartition, Row]]"


# ---- ShareFetch


def share_fetch(request: ShareFetchRequest, exchange: Exchange, resources: Resources) -> Message | None:
    if not has_share_groups(resources.log):
        return ShareFetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if request.group_id is None or request.member_id is None:
        return ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    shares = resources.shares
    key = SessionKey(request.group_id, request.member_id)
    has_acknowledgements = any(
        partition.acknowledgement_batches for topic in request.topics for partition in topic.partitions
    )
    connection = exchange.connection
    begun = shares.sessions.begin(
        key,
        request.share_session_epoch,
        _asked(request, resources),
        [
            TopicIdPartition(topic.topic_id, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ],
        connection,
        has_acknowledgements=has_acknowledgements,
    )
    if begun is ErrorCode.SHARE_SESSION_LIMIT_REACHED and request.max_wait_ms > 0:
        # As in Kafka, the client is slowed down.
        waiting = _Limited(exchange)
        exchange.abandon = lambda: resources.waiters.drop(waiting)
        resources.waiters.park(waiting, request.max_wait_ms)
        return None
    if isinstance(begun, ErrorCode):
        return ShareFetchResponse(error_code=begun)
    if not begun.is_later and begun.session is not None:
        session = connection.session
        session.at_end = lambda: shares.disconnected(connection, key.group_id)
    acknowledged = _acknowledge(request, exchange, resources) if has_acknowledgements else {}
    reading = _Reading(request, begun, acknowledged, exchange, resources)
    if reading.attempt(final=request.max_wait_ms <= 0):
        return None
    exchange.abandon = lambda: resources.waiters.drop(reading)
    resources.waiters.park(reading, request.max_wait_ms)
    return None


def _acknowledge(
    request: ShareFetchRequest, exchange: Exchange, resources: Resources
) -> dict[TopicIdPartition, ErrorCode]:
    """The outcomes of the acknowledgements in a ShareFetch."""
    return {
        key: refusal.code if refusal is not None else ErrorCode.NONE
        for key, refusal in acknowledged(request, exchange, resources).items()
    }


def _asked(request: ShareFetchRequest, resources: Resources) -> list[SessionPartition]:
    found = []
    for topic in request.topics:
        is_known = resources.log.topic_by_id(topic.topic_id) is not None
        for partition in topic.partitions:
            key = TopicIdPartition(topic.topic_id, partition.partition_index)
            found.append(SessionPartition(key, is_known, True))
    return found


class _Limited:
    """A request that opens one session too many, and waits as if it found no records."""

    keys: Sequence[PartitionKey] = ()

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def attempt(self, *, final: bool) -> bool:
        if final:
            self._exchange.answer(ShareFetchResponse(error_code=ErrorCode.SHARE_SESSION_LIMIT_REACHED))
        return final

    def abort(self) -> None:
        self._exchange.connection.abort()


class _Read(NamedTuple):
    """What one attempt has read of a partition. Nothing is acquired before it is clear that the request is answered."""

    key: TopicIdPartition
    partition: SharePartition
    log: PartitionLog
    offset: int
    records: bytes | FileSlice
    spots: list[_Spot]


class _Reading:
    """One ShareFetch, attempted until there is enough to acquire."""

    def __init__(
        self,
        request: ShareFetchRequest,
        begun: Begun,
        acknowledged: dict[TopicIdPartition, ErrorCode],
        exchange: Exchange,
        resources: Resources,
    ) -> None:
        assert request.group_id is not None
        assert request.member_id is not None
        self._request = request
        self._group_id, self._member_id = request.group_id, request.member_id
        self._begun = begun
        self._acknowledged = acknowledged
        self._exchange = exchange
        self._resources = resources
        self._shares: ShareRunner = resources.shares
        self._max_bytes = min(request.max_bytes, resources.config.fetch_max_bytes)
        if exchange.work is not None:
            self._max_bytes = min(self._max_bytes, resources.throttle.most_fetched(exchange))
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._committed = self._shares.is_read_committed(self._group_id)
        self._watched: list[PartitionKey] = []

    @property
    def keys(self) -> Iterable[PartitionKey]:
        return self._watched

    def attempt(self, *, final: bool) -> bool:
        """Answer if there is enough to acquire, or an error; always if `final`. Whether it answered."""
        refused: Rows = []
        readable, watched = self._readable(refused)
        read, has_failed = self._read(readable, refused)
        # As in Kafka, `min_bytes` of 0 waits for a partition that is not full.
        has_enough = bool(readable) and sum(len(each.records) for each in read) >= self._min_bytes
        has_enough = has_enough or any(self._has_more(each) for each in read)
        if not final and watched and not has_failed and not has_enough:
            self._watched = watched
            return False
        rows = [*self._acquired(read), *refused]
        self._answer(rows)
        return True

    def abort(self) -> None:
        self._exchange.connection.abort()

    def _readable(self, refused: Rows) -> tuple[list[tuple[SharePartition, PartitionLog]], list[PartitionKey]]:
        """The partitions that can be read, and what to watch as long as there is nothing to acquire."""
        log_of, shares = self._resources.log.partition, self._shares
        may = self._resources.access(self._exchange.connection).of(*READ_TOPIC)
        readable: list[tuple[SharePartition, PartitionLog]] = []
        watched: list[PartitionKey] = []
        if not has_share_groups(self._resources.log):
            # They were disabled while it waited: no partition is loaded again.
            return readable, watched
        for asked in rotated(self._begun.partitions, self._begun.epoch):
            topic_id, index = asked.key
            topic = self._resources.log.topic_by_id(topic_id)
            log = log_of(topic.name, index) if topic is not None else None
            if topic is None or log is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if asked.was_known else ErrorCode.UNKNOWN_TOPIC_ID
                refused.append((asked.key, _refused(index, TOPIC_DENIED if topic and not may[topic.name] else code)))
                continue
            if not may[topic.name]:
                refused.append((asked.key, _refused(index, TOPIC_DENIED)))
                continue
            try:
                partition = shares.partition(self._group_id, topic_id, index, log)
            except _UNREADABLE as error:
                # It looks for the first record of a time.
                refused.append((asked.key, _refused(index, _code_of(error))))
                continue
            if isinstance(partition, Refusal):
                refused.append((asked.key, _refused(index, partition.code, partition.message)))
                continue
            watched += [(topic.name, index), shares.wait_key(partition.key)]
            if partition.can_acquire():
                readable.append((partition, log))
        return readable, watched

    def _read(self, readable: list[tuple[SharePartition, PartitionLog]], refused: Rows) -> tuple[list[_Read], bool]:
        """Read the same share of the limit from each until there is enough. Whether a partition has an error to report."""
        found: list[_Read] = []
        room, wanted_bytes = self._request.max_records, self._min_bytes
        has_any = has_failed = False
        for partition, log in readable:
            key = TopicIdPartition(partition.key.topic_id, partition.key.partition)
            max_bytes = min(self._max_bytes // len(readable), MOST_BYTES)
            offset = partition.next_fetch_offset()
            if room <= 0 and wanted_bytes <= 0:
                found.append(_Read(key, partition, log, offset, b"", []))
                continue
            try:
                records, spots = self._records(partition, log, offset, max_bytes, at_least_one=not has_any)
            except _UNREADABLE as error:
                refused.append((key, _refused(key.partition, _code_of(error))))
                has_failed = True
                continue
            if records is None:
                if partition.log_start_moved(log.log_start_offset):
                    # The client asks again, from the new start.
                    refused.append((key, _row(key.partition)))
                    has_failed = True
                continue
            found.append(_Read(key, partition, log, offset, records, spots))
            has_any = has_any or len(records) > 0
            wanted_bytes -= len(records)
            if spots:
                room -= spots[-1].batch.last_offset - max(offset - 1, partition.end_offset)
        return found, has_failed

    def _has_more(self, read: _Read) -> bool:
        """Whether the log has more than was read: the rest is in another file, or more than the request may acquire."""
        end = read.log.last_stable_offset if self._committed else read.log.high_watermark
        return bool(read.spots) and read.spots[-1].batch.last_offset + 1 < end

    def _records(
        self, partition: SharePartition, log: PartitionLog, offset: int, max_bytes: int, *, at_least_one: bool
    ) -> tuple[bytes | FileSlice | None, list[_Spot]]:
        """The records from an offset on, as far as this request can acquire them and no further than its limit."""
        until = log.last_stable_offset if self._committed else log.high_watermark
        # Behind all that are in flight, as many as the request asks for.
        until = min(until, max(offset, partition.end_offset + 1) + self._request.max_records)
        size = max(FIRST_BYTES, self._min_bytes)
        while True:
            size = min(size, max_bytes)
            records = log.read(offset, size, at_least_one=at_least_one, committed=self._committed)
            spots = list(_batches(records)) if records else []
            if records is None or size == max_bytes or (spots and spots[-1].batch.last_offset + 1 >= until):
                return records, spots
            if type(records) is FileSlice and records.is_cut:
                # A larger read would find no more.
                return records, spots
            size *= _GROWTH

    def _acquired(self, read: list[_Read]) -> Iterator[tuple[TopicIdPartition, Row]]:
        request, shares = self._request, self._shares
        deadline_ms = shares.now_ms + shares.lock_duration_ms(self._group_id)
        room = request.max_records
        for each in read:
            row = _row(each.key.partition)
            if each.spots:
                wanted = Wanted(self._member_id, room, request.batch_size, deadline_ms)
                aborted = _aborted(each) if self._committed else []
                found = shares.acquire(
                    each.partition, wanted, each.offset, [spot.batch for spot in each.spots], aborted
                )
                if found:
                    row.records = _cut(each.records, each.spots, found)
                    row.acquired_records = [
                        ShareFetchResponse.AcquiredRecords(**acquired._asdict()) for acquired in found
                    ]
                    room -= sum(acquired.records for acquired in found)
            yield each.key, row

    def _answer(self, rows: Rows) -> None:
        answered = to_answer(self._begun, rows)
        if isinstance(answered, ErrorCode):
            response = ShareFetchResponse(error_code=answered)
            answered = []
        else:
            response = ShareFetchResponse()
        response.acquisition_lock_timeout_ms = self._shares.lock_duration_ms(self._group_id)
        found = dict(answered)
        for key, code in self._acknowledged.items():
            found.setdefault(key, _row(key.partition)).acknowledge_error_code = code
        topics: dict[bytes, ShareFetchResponse.Topic] = {}
        for key, row in found.items():
            topic = topics.setdefault(key.topic_id, ShareFetchResponse.Topic(topic_id=key.topic_id, partitions=[]))
            topic.partitions.append(row)
        response.responses = list(topics.values())
        if self._request.share_session_epoch == FINAL_EPOCH:
            self._shares.close_session(SessionKey(self._group_id, self._member_id))
        self._exchange.answer(response)


_UNREADABLE = DamageError, OutOfDescriptors


def _code_of(error: DamageError | OutOfDescriptors) -> ErrorCode:
    if isinstance(error, OutOfDescriptors):
        return ErrorCode.KAFKA_STORAGE_ERROR
    logger.error("%s", error)
    return ErrorCode.CORRUPT_MESSAGE


def _row(index: int) -> Row:
    return Row(partition_index=index, current_leader=ShareFetchResponse.CurrentLeader(), records=b"")


def _refused(index: int, code: ErrorCode, message: str | None = None) -> Row:
    row = _row(index)
    row.error_code, row.error_message = code, message
    return row


# ---- records


class _Spot(NamedTuple):
    """A record batch, and where it is in what was read."""

    position: int
    size_bytes: int
    batch: FetchedBatch


def _batches(records: bytes | FileSlice) -> Iterator[_Spot]:
    content = records if isinstance(records, bytes) else records.tobytes()
    for position, header in batches(content):
        yield _Spot(position, header.size_bytes, _fetched(content, position, header))


def _fetched(content: bytes, position: int, header: BatchHeader) -> FetchedBatch:
    is_abort = False
    if header.is_control:
        marker = read_marker(content, position)
        is_abort = marker is not None and not marker.is_commit
    return FetchedBatch(header.base_offset, header.last_offset, header.producer_id, header.is_transactional, is_abort)


def _aborted(read: _Read) -> list[AbortedFrom]:
    if not isinstance(read.records, FileSlice):
        return []
    found = read.log.aborted_transactions(read.offset, read.records.end_offset)
    return [AbortedFrom(aborted.producer_id, aborted.first_offset) for aborted in found]


def _cut(records: bytes | FileSlice, spots: Sequence[_Spot], acquired: Sequence[Acquired]) -> bytes | FileSlice:
    """The batches from the first acquired record to the last one."""
    first, last = acquired[0].first_offset, acquired[-1].last_offset
    wanted = [spot for spot in spots if spot.batch.last_offset >= first and spot.batch.base_offset <= last]
    start, end = wanted[0].position, wanted[-1].position + wanted[-1].size_bytes
    if end - start == len(records):
        return records
    return records[start:end] if isinstance(records, bytes) else records.part(start, end - start)


REQUESTS = (Declaration(ShareFetchRequest, share_fetch, of_group(ShareFetchResponse)),)
