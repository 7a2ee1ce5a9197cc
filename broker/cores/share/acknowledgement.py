"""End the acquisition of records: acknowledge, release, time out. Source: SharePartition of Kafka 4.1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker.cores.share.in_flight import NO_MEMBER, Delivery, InFlightBatch, RecordState
from broker.cores.share.partition import Refusal, SharePartition
from broker.cores.share.state_batches import StateBatch
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode

GAP, ACCEPT, RELEASE, REJECT = range(4)
_STATE_OF = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}


class Acknowledgement(NamedTuple):
    """A type for each offset, or one for all."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def state_at(self, offset: int) -> RecordState:
        return _STATE_OF[self.types[offset - self.first_offset] if len(self.types) > 1 else self.types[0]]


def acknowledge(
    partition: SharePartition, member_id: str, acknowledgements: Sequence[Acknowledgement]
) -> Refusal | None:
    """Apply all of them, durably, or none: the whole request is refused if one is."""
    if partition.is_fenced:
        return _FENCED
    ended = _Ended(partition)
    for acknowledgement in acknowledgements:
        refusal = _acknowledge(partition, member_id, acknowledgement, ended)
        if refusal is not None:
            ended.undo()
            return refusal
    return ended.complete()


def release(partition: SharePartition, member_id: str) -> Refusal | None:
    """Release what the member has acquired: its session has ended. It may not have seen the records, so that delivery does not count."""
    if partition.is_fenced:
        return _FENCED
    ended = _Ended(partition)
    for batch in partition.in_flight:
        if batch.whole is not None and batch.whole.member_id != member_id:
            continue
        for first, last, delivery in _acquired_runs(partition, batch, batch.first_offset, batch.last_offset):
            if delivery.member_id == member_id:
                ended.release(delivery, first, last, counts=False)
    return ended.complete()


def expire(partition: SharePartition, now_ms: int) -> bool:
    """Release what was acquired too long ago. Whether anything was."""
    ended = _Ended(partition)
    while (lock := partition.pop_lock(now_ms)) is not None:
        _, first_offset, last_offset = lock
        before = partition.in_flight.floor(first_offset)
        low = before.first_offset if before is not None else first_offset
        for batch in partition.in_flight.between(low, last_offset):
            for first, last, delivery in _acquired_runs(partition, batch, first_offset, last_offset):
                if delivery.deadline_ms <= now_ms:
                    ended.release(delivery, first, last, counts=True)
    if not ended:
        return False
    # The locks are gone, whether the coordinator takes the states or not.
    ended.complete(must_write=False)
    return True


_FENCED = Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, "The share partition is fenced.")
_NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."


class _Ended:
    """The acquisitions that a request has ended, and how to undo this."""

    def __init__(self, partition: SharePartition) -> None:
        self._partition = partition
        self._before: list[tuple[Delivery, RecordState, int, str]] = []
        self._batches: list[StateBatch] = []

    def __bool__(self) -> bool:
        return bool(self._batches)

    def end(self, delivery: Delivery, first: int, last: int, state: RecordState, count: int) -> None:
        self._before.append((delivery, delivery.state, delivery.count, delivery.member_id))
        delivery.end(state, count)
        self._batches.append(StateBatch(first, last, state, count))
        if state is RecordState.AVAILABLE:
            self._partition.must_search = True

    def release(self, delivery: Delivery, first: int, last: int, *, counts: bool) -> None:
        """End the acquisition; the records are available again, unless they were delivered too often or are deleted."""
        if last < self._partition.start_offset:
            self.end(delivery, first, last, RecordState.ARCHIVED, delivery.count)
        elif counts:
            self.end_or_archive(delivery, first, last, RecordState.AVAILABLE)
        else:
            self.end(delivery, first, last, RecordState.AVAILABLE, delivery.count - 1)

    def end_or_archive(self, delivery: Delivery, first: int, last: int, state: RecordState) -> None:
        """End the acquisition; archive what was delivered as often as is allowed."""
        if state is RecordState.AVAILABLE and delivery.count >= self._partition.limits.deliveries:
            state = RecordState.ARCHIVED
        self.end(delivery, first, last, state, delivery.count)

    def complete(self, *, must_write: bool = True) -> Refusal | None:
        """Write the states, and move the start offset. If they cannot be written, nothing has happened."""
        if not self._batches:
            return None
        refusal = self._partition.write(self._batches)
        if refusal is not None and must_write:
            self.undo()
            return refusal
        self._partition.move_start()
        return None

    def undo(self) -> None:
        for delivery, state, count, member_id in reversed(self._before):
            delivery.state, delivery.count, delivery.member_id = state, count, member_id


def _acquired_runs(
    partition: SharePartition, batch: InFlightBatch, first_offset: int, last_offset: int
) -> Iterator[tuple[int, int, Delivery]]:
    """The acquired records of a batch: all of it as one, or its offsets from first to last."""
    if batch.whole is not None:
        if batch.whole.state is not RecordState.ACQUIRED:
            return
        if not batch.first_offset < partition.start_offset <= batch.last_offset:
            yield batch.first_offset, batch.last_offset, batch.whole
            return
        # Some of its records are deleted.
    for offset, delivery in batch.split().items():
        if first_offset <= offset <= last_offset and delivery.state is RecordState.ACQUIRED:
            yield offset, offset, delivery


# ---- acknowledgements


def _acknowledge(
    partition: SharePartition, member_id: str, acknowledgement: Acknowledgement, ended: _Ended
) -> Refusal | None:
    if any(type_ not in _STATE_OF for type_ in acknowledgement.types):
        return Refusal(ErrorCode.INVALID_REQUEST, f"Invalid acknowledge type: {list(acknowledgement.types)}")
    first, last = acknowledgement.first_offset, acknowledgement.last_offset
    if last < partition.start_offset:
        return None
    batches = _batches_of(partition, first, last)
    if isinstance(batches, Refusal):
        return batches
    for batch in batches:
        if batch.last_offset < partition.start_offset:
            continue
        refusal = _acknowledge_batch(partition, member_id, acknowledgement, batch, ended)
        if refusal is not None:
            return refusal
    return None


def _batches_of(partition: SharePartition, first: int, last: int) -> list[InFlightBatch] | Refusal:
    in_flight = partition.in_flight
    before = in_flight.floor(first)
    if before is None and first < partition.start_offset <= last:
        # The first of them are deleted.
        before = in_flight.floor(partition.start_offset)
    if before is None:
        return Refusal(
            ErrorCode.INVALID_RECORD_STATE,
            "Batch record not found. The request batch offsets are not found in the cache.",
        )
    found = in_flight.between(before.first_offset, last)
    if found[-1].last_offset < first:
        return Refusal(
            ErrorCode.INVALID_REQUEST, "Batch record not found. The first offset in request is past acquired records."
        )
    if last > found[-1].last_offset:
        return Refusal(
            ErrorCode.INVALID_REQUEST, "Batch record not found. The last offset in request is past acquired records."
        )
    return found


def _acknowledge_batch(
    partition: SharePartition, member_id: str, acknowledgement: Acknowledgement, batch: InFlightBatch, ended: _Ended
) -> Refusal | None:
    first, last = acknowledgement.first_offset, acknowledgement.last_offset
    one = batch.whole
    if one is not None:
        if one.member_id == NO_MEMBER or one.state is not RecordState.ACQUIRED:
            return Refusal(ErrorCode.INVALID_RECORD_STATE, _NOT_ACQUIRED)
        if one.member_id != member_id:
            return Refusal(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of batch record")
        is_covered = first <= batch.first_offset and batch.last_offset <= last
        has_deleted = batch.first_offset < partition.start_offset
        if is_covered and len(acknowledgement.types) == 1 and not has_deleted:
            state = acknowledgement.state_at(batch.first_offset)
            ended.end_or_archive(one, batch.first_offset, batch.last_offset, state)
            return None
    for offset, delivery in batch.split().items():
        if not first <= offset <= last or offset < partition.start_offset:
            continue
        if delivery.state is not RecordState.ACQUIRED:
            return Refusal(
                ErrorCode.INVALID_RECORD_STATE, "The batch cannot be acknowledged. The offset is not acquired."
            )
        if delivery.member_id != member_id:
            return Refusal(ErrorCode.INVALID_RECORD_STATE, "Member is not the owner of offset")
        ended.end_or_archive(delivery, offset, offset, acknowledgement.state_at(offset))
    return None
