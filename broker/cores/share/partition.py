"""SharePartition: which records of a partition may be acquired, from where it reads next, and where its start offset is.

Pure: the clock and the state in the share coordinator are arguments. `acquisition.py` acquires records, `acknowledgement.py` ends their
acquisition. Source: SharePartition of Kafka 4.1. In one process a write succeeds or fails at once, so no state is between two others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from broker.cores.share.in_flight import FINISHED, Delivery, InFlight, InFlightBatch, RecordState
from broker.cores.share.state import SharePartitionKey, ShareState
from broker.cores.share.state_batches import NO_START_OFFSET, StateBatch
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode


class Refusal(NamedTuple):
    """Why something cannot be done, with Kafka's words for clients."""

    code: ErrorCode
    message: str


class Limits(NamedTuple):
    """`group.share.partition.max.record.locks` and `group.share.delivery.count.limit`."""

    in_flight: int = 2000
    deliveries: int = 5


class SharePartition:
    """Offsets: start offset <= in flight <= end offset. What is below the start offset is finished.

    Without records in flight, `end_offset` is the next offset to read; else it is the last offset in flight.
    """

    def __init__(self, key: SharePartitionKey, state: ShareState, leader_epoch: int, limits: Limits) -> None:
        self.key = key
        self.limits = limits
        self.in_flight = InFlight()
        self.start_offset = 0
        self.end_offset = 0
        self.state_epoch = 0
        self.leader_epoch = leader_epoch
        # A fenced partition acquires nothing; there is another one for the same key, or will be.
        self.is_fenced = False
        # Some record in flight may be available again.
        self.must_search = False
        # Between batches that were in flight before a restart, records may be missing that were acquired then, and not acknowledged.
        self.gap: _Gap | None = None
        self._state = state
        self._locks: list[tuple[int, int, int]] = []  # a heap: deadline, first and last offset

    def load(self, initial_offset: Callable[[], int]) -> Refusal | None:
        """Begin with what is stored. `initial_offset` says where a group without a start offset begins."""
        stored = self._state.read(self.key, self.leader_epoch)
        if isinstance(stored, ErrorCode):
            return write_refusal(stored)
        self.state_epoch = stored.state_epoch
        self.start_offset = stored.start_offset if stored.start_offset != NO_START_OFFSET else initial_offset()
        gap_start, expected = -1, self.start_offset
        for batch in stored.batches:
            if batch.first_offset < self.start_offset:
                return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "A batch is below the start offset.")
            if gap_start == -1 and batch.first_offset > expected:
                gap_start = expected
            expected = batch.last_offset + 1
            delivery = Delivery(RecordState(batch.delivery_state), batch.delivery_count)
            self.in_flight.add(InFlightBatch(batch.first_offset, batch.last_offset, delivery))
        if not self.in_flight:
            self.end_offset = self.start_offset
            return None
        self.must_search = True
        self.end_offset = self.in_flight.last.last_offset
        if gap_start != -1:
            self.gap = _Gap(self.end_offset, gap_start)
        self.move_start()
        return None

    # -- reading

    @property
    def is_drained(self) -> bool:
        """Nothing that is not finished is in flight."""
        return not self.in_flight or self.start_offset > self.in_flight.last.last_offset

    def next_fetch_offset(self) -> int:
        """The first available offset: of a record in flight, of a gap, or behind all of them."""
        if self.is_drained:
            self.must_search = False
            return self.end_offset
        if not self.must_search:
            return self.end_offset + 1
        offset = self._first_available()
        if offset is None:
            self.must_search = False
            return self.end_offset + 1
        return offset

    def _first_available(self) -> int | None:
        has_gaps = self.has_gaps
        gap_start = self.gap.start if self.gap is not None else 0
        for batch in self.in_flight:
            if has_gaps:
                if batch.first_offset > gap_start:
                    return gap_start
                gap_start = batch.last_offset + 1
            for first, _, delivery in batch.runs():
                if delivery.state is RecordState.AVAILABLE:
                    return first
        return None

    def can_acquire(self) -> bool:
        """Whether the limit of records in flight allows to read on."""
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        if self._count() >= self.limits.in_flight:
            self._move_behind_all()
        return self._count() < self.limits.in_flight

    def _move_behind_all(self) -> None:
        """Move the start offset if everything is finished, and there is nothing to read before the end: no acknowledgement will do it.

        Records of aborted transactions are finished when they are read. A gap that was read last before it has moved keeps the start
        offset. Kafka 4.1 reads on in neither case.
        """
        gap, self.gap = self.gap, None
        if self._last_finished() == self.end_offset:
            self.move_start()
        else:
            self.gap = gap

    def _count(self) -> int:
        return self.end_offset - self.start_offset + 1 if self.in_flight else 0

    @property
    def has_gaps(self) -> bool:
        """Whether gaps between batches are records to acquire. Gaps that are read later are natural: there are no records."""
        return self.gap is not None and self.gap.end == self.end_offset

    def has_read_until(self, offset: int) -> None:
        """What lies before the offset has been acquired, with the gaps."""
        if self.gap is not None:
            self.gap = _Gap(self.gap.end, offset) if self.gap.end == self.end_offset else None

    # -- locks

    def lock(self, first_offset: int, last_offset: int, deadline_ms: int) -> None:
        """Release these records at the deadline, unless that has happened before."""
        heappush(self._locks, (deadline_ms, first_offset, last_offset))

    @property
    def wake_at_ms(self) -> int | None:
        """When `expire` is due; earlier if what was acquired first is acknowledged."""
        return self._locks[0][0] if self._locks else None

    def pop_lock(self, now_ms: int) -> tuple[int, int, int] | None:
        """(deadline, first offset, last offset) of what may be due."""
        return heappop(self._locks) if self._locks and self._locks[0][0] <= now_ms else None

    # -- writing

    def write(self, batches: Sequence[StateBatch]) -> Refusal | None:
        """Make states durable, with the start offset."""
        error = self._state.write(self.key, self.state_epoch, self.leader_epoch, self.start_offset, batches)
        return write_refusal(error) if error else None

    # -- the start offset

    def log_start_moved(self, log_start_offset: int) -> bool:
        """Records below the log start are deleted: those that are available are archived. The next write saves the start offset.
        False: it is not above the start offset.

        Acquired records below it are archived when they are released. Kafka 4.1 archives only the first of several batches.
        """
        if log_start_offset <= self.start_offset:
            return False
        if not self.in_flight:
            self.start_offset = self.end_offset = log_start_offset
            return True
        if self.archive(self.start_offset, log_start_offset, self.in_flight, RecordState.AVAILABLE):
            self.must_search = True
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)
        return True

    def archive(self, first: int, end: int, batches: InFlight | Sequence[InFlightBatch], state: RecordState) -> bool:
        """Archive what has this state at first <= offset < end. Whether there was anything."""
        found = False
        for batch in batches:
            if batch.first_offset >= end:
                break
            if batch.whole is not None:
                if batch.whole.state is not state:
                    continue
                if first <= batch.first_offset and batch.last_offset < end:
                    batch.whole.end(RecordState.ARCHIVED, batch.whole.count)
                    found = True
                    continue
            for offset, delivery in batch.split().items():
                if first <= offset < end and delivery.state is state:
                    delivery.end(RecordState.ARCHIVED, delivery.count)
                    found = True
        return found

    def move_start(self) -> bool:
        """Move the start offset behind the finished records at the start, and forget their batches. Whether it has moved."""
        if not self._starts_finished():
            return False
        finished = self._last_finished()
        if finished is None:
            return False
        last = self.in_flight.last.last_offset
        if finished == last:
            self.start_offset = max(self.start_offset, last + 1)
            self.end_offset = self.start_offset
            self.in_flight.clear()
            self._locks.clear()
            return True
        batch = self.in_flight.floor(finished)
        assert batch is not None
        if finished != batch.last_offset:
            following = finished + 1
            self.in_flight.drop_before(batch.first_offset)
        else:
            next_batch = self.in_flight.after(finished)
            assert next_batch is not None
            following = next_batch.first_offset
            if self.gap is not None and self.has_gaps:
                following = min(self.gap.start, following)
            self.in_flight.drop_before(batch.first_offset + 1)
        # Acquired records below it may still be in flight, if the log start has passed them.
        self.start_offset = max(self.start_offset, following)
        return True

    def _starts_finished(self) -> bool:
        batch = self.in_flight.floor(self.start_offset) if self.in_flight else None
        # Kafka looks for the start offset in the batch before it, too, which may end earlier if records are missing between them.
        return batch is not None and batch.at(min(self.start_offset, batch.last_offset)).state in FINISHED

    def _last_finished(self) -> int | None:
        """The last offset of the finished records at the start."""
        found: int | None = None
        for batch in self.in_flight:
            if self.gap is not None and self.has_gaps and batch.last_offset >= self.gap.start:
                return found
            for _, last, delivery in batch.runs():
                if delivery.state not in FINISHED:
                    return found
                found = last
        return found


class _Gap(NamedTuple):
    """Valid as long as the end offset is `end`, as after the load."""

    end: int
    start: int


_WRITE_ERRORS = {
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


def write_refusal(error: ErrorCode) -> Refusal:
    """The error that clients get for one of the share coordinator."""
    return Refusal(_WRITE_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR), error.meaning)
