"""The records in flight of a share partition: batches of offsets that were acquired, with what became of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from enum import IntEnum

from broker.light_dataclasses import dataclass

NO_MEMBER = ""


class RecordState(IntEnum):
    """Kafka's ids. Acknowledged and archived records are finished; those that were rejected, or delivered too often, are archived."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


FINISHED = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED


@dataclass(slots=True)
class Delivery:
    """The state of a record, or of all records of a batch. `member_id` has acquired it, until `deadline_ms` (monotonic)."""

    state: RecordState
    count: int
    member_id: str = NO_MEMBER
    deadline_ms: int = 0

    def acquire(self, member_id: str, deadline_ms: int) -> None:
        self.state, self.member_id, self.deadline_ms = RecordState.ACQUIRED, member_id, deadline_ms
        self.count += 1

    def end(self, state: RecordState, count: int) -> None:
        """The record is acquired no more."""
        self.state, self.count, self.member_id = state, count, NO_MEMBER


class InFlightBatch:
    """Records that were acquired together. They have one state (`whole`), or one for each offset (`each`)."""

    __slots__ = ("each", "first_offset", "last_offset", "whole")

    def __init__(self, first_offset: int, last_offset: int, delivery: Delivery) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.whole: Delivery | None = delivery
        self.each: dict[int, Delivery] | None = None

    def __len__(self) -> int:
        return self.last_offset - self.first_offset + 1

    def split(self) -> dict[int, Delivery]:
        """Give each offset a state of its own, from now on."""
        if self.each is None:
            one = self.whole
            assert one is not None
            self.each = {
                offset: Delivery(one.state, one.count, one.member_id, one.deadline_ms)
                for offset in range(self.first_offset, self.last_offset + 1)
            }
            self.whole = None
        return self.each

    def at(self, offset: int) -> Delivery:
        if self.whole is not None:
            return self.whole
        assert self.each is not None
        return self.each[offset]

    def runs(self) -> Iterator[tuple[int, int, Delivery]]:
        """First offset, last offset and state, in order: of the whole batch, or of each offset."""
        if self.whole is not None:
            yield self.first_offset, self.last_offset, self.whole
        else:
            for offset, delivery in (self.each or {}).items():
                yield offset, offset, delivery


class InFlight:
    """Batches by their first offset; they do not overlap."""

    def __init__(self) -> None:
        self._batches: list[InFlightBatch] = []

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    @property
    def first(self) -> InFlightBatch:
        return self._batches[0]

    @property
    def last(self) -> InFlightBatch:
        return self._batches[-1]

    def add(self, batch: InFlightBatch) -> None:
        """Add a batch, in the place of one with the same first offset."""
        at = bisect_left(self._batches, batch.first_offset, key=_first_offset)
        is_there = at < len(self._batches) and self._batches[at].first_offset == batch.first_offset
        self._batches[at : at + is_there] = [batch]

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins at or before the offset."""
        at = bisect_right(self._batches, offset, key=_first_offset)
        return self._batches[at - 1] if at else None

    def after(self, offset: int) -> InFlightBatch | None:
        """The first batch that begins after the offset."""
        at = bisect_right(self._batches, offset, key=_first_offset)
        return self._batches[at] if at < len(self._batches) else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that begin at these offsets or between them."""
        low = bisect_left(self._batches, first, key=_first_offset)
        return self._batches[low : bisect_right(self._batches, last, key=_first_offset)]

    def drop_before(self, offset: int) -> None:
        """Forget the batches that begin before the offset."""
        del self._batches[: bisect_left(self._batches, offset, key=_first_offset)]

    def clear(self) -> None:
        self._batches.clear()


def _first_offset(batch: InFlightBatch) -> int:
    return batch.first_offset
