"""Which offset of the target a record of the archive got. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Stretch(NamedTuple):
    """Records with consecutive offsets in the source, from `source`, and in the target, from `target`."""

    source: int
    target: int
    records: int


def stretches(sources: Sequence[int], base: int) -> list[Stretch]:
    """The stretches of a batch: its records' offsets in the source, and the offset that its first one got."""
    found: list[Stretch] = []
    start = 0
    for place in range(1, len(sources) + 1):
        if place == len(sources) or sources[place] != sources[place - 1] + 1:
            found.append(Stretch(sources[start], base + start, place - start))
            start = place
    return found


def joined(parts: Iterable[Stretch]) -> list[Stretch]:
    """The same in the order of the source, with neighbours as one."""
    out: list[Stretch] = []
    for one in sorted(parts):
        if out:
            last = out[-1]
            if (last.source + last.records, last.target + last.records) == (one.source, one.target):
                out[-1] = Stretch(last.source, last.target, last.records + one.records)
                continue
        out.append(one)
    return out


class OffsetMap:
    """The replayed records of one partition, which kept their order. All source offsets from `start` to `end` were replayed or left out."""

    def __init__(self, parts: Iterable[Stretch], start: int, end: int) -> None:
        self._parts = joined(parts)
        self.start, self.end = start, end

    def target_of(self, offset: int) -> int | None:
        """Where a group continues that has committed this source offset: at the first replayed record at or after it.

        After all of them, behind the last one. None if the offset is outside of what was replayed, or nothing was.
        """
        if not self._parts or not self.start <= offset <= self.end:
            return None
        place = bisect_right(self._parts, offset, key=lambda one: one.source) - 1
        if place < 0:
            return self._parts[0].target
        one = self._parts[place]
        if offset < one.source + one.records:
            return one.target + offset - one.source
        if place + 1 < len(self._parts):
            return self._parts[place + 1].target
        return one.target + one.records
