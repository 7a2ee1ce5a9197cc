"""Acquire records of a share partition for a member. Source: SharePartition.acquire of Kafka 4.1."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from broker.cores.share.in_flight import Delivery, InFlightBatch, RecordState
from broker.cores.share.partition import SharePartition
from broker.light_named_tuples import NamedTuple

NO_PRODUCER_ID = -1


class FetchedBatch(NamedTuple):
    """What matters of a record batch in the log."""

    base_offset: int
    last_offset: int
    producer_id: int = NO_PRODUCER_ID
    is_transactional: bool = False
    is_abort_marker: bool = False


class AbortedFrom(NamedTuple):
    """The records of this producer are aborted from the offset on, up to its next abort marker."""

    producer_id: int
    first_offset: int


class Acquired(NamedTuple):
    """Records that are the member's now, and how often they have been delivered, with this time."""

    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def records(self) -> int:
        return self.last_offset - self.first_offset + 1


class Wanted(NamedTuple):
    """Who acquires how much, until when (monotonic). Batches of more than `batch_size` records are acquired in parts.

    `max_records` is soft: record batches are acquired as a whole.
    """

    member_id: str
    max_records: int
    batch_size: int
    deadline_ms: int


def acquire(
    partition: SharePartition,
    wanted: Wanted,
    fetch_offset: int,
    batches: Sequence[FetchedBatch],
    aborted: Collection[AbortedFrom] = (),
) -> list[Acquired]:
    """Acquire what is available of the batches that were read from `fetch_offset`; records of aborted transactions are finished."""
    if partition.is_fenced or wanted.max_records <= 0 or not batches:
        return []
    acquired = _Acquisition(partition, wanted, batches).run(fetch_offset)
    return _without_aborted(partition, batches, acquired, aborted) if aborted else acquired


class _Acquisition:
    def __init__(self, partition: SharePartition, wanted: Wanted, batches: Sequence[FetchedBatch]) -> None:
        self._partition = partition
        self._wanted = wanted
        self._batches = batches
        self._found: list[Acquired] = []
        self._count = 0

    def run(self, fetch_offset: int) -> list[Acquired]:
        partition, in_flight = self._partition, self._partition.in_flight
        first, last = self._batches[0].base_offset, self._batches[-1].last_offset
        self._archive_compacted(fetch_offset, first)
        before = in_flight.floor(first)
        base = before.first_offset if before is not None and before.last_offset >= first else first
        known = in_flight.between(base, last)
        if not known:
            self._acquire_new(first, last)
            return self._found
        gap_start = max(base, partition.start_offset)
        for batch in known:
            if self._is_enough:
                break
            if partition.has_gaps:
                if gap_start < batch.first_offset:
                    self._acquire_new(gap_start, batch.first_offset - 1)
                gap_start = batch.last_offset + 1
                if self._is_enough:
                    break
            self._acquire_again(batch, first, last)
        if not self._is_enough and known[-1].last_offset < last:
            self._acquire_new(known[-1].last_offset + 1, last)
        if self._found:
            partition.has_read_until(self._found[-1].last_offset + 1)
        return self._found

    @property
    def _is_enough(self) -> bool:
        return self._count >= self._wanted.max_records

    def _archive_compacted(self, fetch_offset: int, first: int) -> None:
        """Archive what was available before the first batch: compaction has removed it."""
        partition = self._partition
        if not partition.in_flight or fetch_offset >= first:
            return
        before = partition.in_flight.floor(fetch_offset)
        low = before.first_offset if before is not None and before.last_offset >= fetch_offset else fetch_offset
        stale = partition.in_flight.between(low, first - 1)
        if partition.archive(fetch_offset, first, stale, RecordState.AVAILABLE):
            partition.must_search = True

    def _acquire_again(self, batch: InFlightBatch, first: int, last: int) -> None:
        """Acquire what is available of a batch that was acquired before."""
        if batch.whole is not None:
            if batch.whole.state is not RecordState.AVAILABLE:
                return
            if first <= batch.first_offset and batch.last_offset <= last:
                self._deliver(batch.whole, batch.first_offset, batch.last_offset)
                return
        for offset, delivery in batch.split().items():
            if first <= offset <= last and delivery.state is RecordState.AVAILABLE:
                self._deliver(delivery, offset, offset)

    def _deliver(self, delivery: Delivery, first: int, last: int) -> None:
        delivery.acquire(self._wanted.member_id, self._wanted.deadline_ms)
        self._partition.lock(first, last, self._wanted.deadline_ms)
        self._note(Acquired(first, last, delivery.count))

    def _note(self, acquired: Acquired) -> None:
        self._found.append(acquired)
        self._count += acquired.records

    def _acquire_new(self, first: int, last: int) -> None:
        """Acquire records that are not in flight, in batches of about `batch_size` records."""
        partition, wanted = self._partition, self._wanted
        # The batch may begin with records that are finished. Kafka 4.1 delivers them again if others are in flight.
        first = max(first, partition.end_offset if not partition.in_flight else partition.start_offset)
        room = wanted.max_records - self._count
        if room < last - first + 1:
            last = min(last, self._end_of_batch(first + room - 1))
        for start, end in self._parts(first, last):
            delivery = Delivery(RecordState.ACQUIRED, 1, wanted.member_id, wanted.deadline_ms)
            partition.in_flight.add(InFlightBatch(start, end, delivery))
            partition.lock(start, end, wanted.deadline_ms)
            self._note(Acquired(start, end, 1))
        if partition.in_flight.first.first_offset == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, last)
        partition.has_read_until(last + 1)

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the record batch with this offset."""
        holder = next((batch for batch in reversed(self._batches) if batch.base_offset <= offset), None)
        return holder.last_offset if holder is not None and offset <= holder.last_offset else offset

    def _parts(self, first: int, last: int) -> list[tuple[int, int]]:
        parts: list[tuple[int, int]] = []
        if last - first + 1 > self._wanted.batch_size:
            for batch in self._batches:
                if batch.base_offset > last:
                    break
                if batch.base_offset - first >= self._wanted.batch_size:
                    parts.append((first, batch.base_offset - 1))
                    first = batch.base_offset
        return [*parts, (first, last)]


# ---- transactions


def _without_aborted(
    partition: SharePartition,
    batches: Sequence[FetchedBatch],
    acquired: list[Acquired],
    aborted: Collection[AbortedFrom],
) -> list[Acquired]:
    for batch in aborted_batches(batches, aborted):
        before = partition.in_flight.floor(batch.base_offset)
        low = before.first_offset if before is not None else batch.base_offset
        affected = partition.in_flight.between(low, batch.last_offset)
        partition.archive(batch.base_offset, batch.last_offset + 1, affected, RecordState.ACQUIRED)
        acquired = [rest for each in acquired for rest in _cut(each, batch)]
    return acquired


def aborted_batches(batches: Sequence[FetchedBatch], aborted: Collection[AbortedFrom]) -> list[FetchedBatch]:
    """The batches that are part of aborted transactions."""
    waiting = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    producers: set[int] = set()
    found: list[FetchedBatch] = []
    for batch in batches:
        if batch.producer_id == NO_PRODUCER_ID:
            continue
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.is_abort_marker:
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(batch)
    return found


def _cut(acquired: Acquired, batch: FetchedBatch) -> list[Acquired]:
    """What remains of acquired records without those of a batch."""
    if acquired.last_offset < batch.base_offset or batch.last_offset < acquired.first_offset:
        return [acquired]
    return [
        acquired._replace(first_offset=first, last_offset=last)
        for first, last in (
            (acquired.first_offset, batch.base_offset - 1),
            (batch.last_offset + 1, acquired.last_offset),
        )
        if first <= last
    ]
