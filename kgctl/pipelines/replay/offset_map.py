"""Which offset of the target a record of the archive got. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Of records that are in the target at offsets that the cluster has not said.
UNKNOWN = -1


class Stretch(NamedTuple):
    """Records with consecutive offsets in the source, from `source`, and in the target, from `target` or UNKNOWN."""

    source: int
    target: int
    records: int


def stretches(sources: Sequence[int], base: int) -> list[Stretch]:
    """The stretches of a batch: its records' offsets in the source, and the offset that its first one got, or UNKNOWN."""
    found: list[Stretch] = []
    start = 0
    for place in range(1, len(sources) + 1):
        if place == len(sources) or sources[place] != sources[place - 1] + 1:
            found.append(Stretch(sources[start], UNKNOWN if base < 0 else base + start, place - start))
            start = place
    return found


def joined(parts: Iterable[Stretch]) -> list[Stretch]:
    """The same in the order of the source, with neighbours as one."""
    out: list[Stretch] = []
    for one in sorted(parts):
        if out:
            last = out[-1]
            is_known = UNKNOWN not in (last.target, one.target)
            if is_known and (last.source + last.records, last.target + last.records) == (one.source, one.target):
                out[-1] = Stretch(last.source, last.target, last.records + one.records)
                continue
        out.append(one)
    return out


class OffsetMap:
    """The replayed records of one partition, which kept their order. All source offsets from `start` to `end` were replayed or left out."""

    def __init__(self, parts: Iterable[Stretch], start: int, end: int) -> None:
        self._parts = joined(parts)
        self.start, self.end = start, end

    @property
    def stretches(self) -> list[Stretch]:
        """Those that are known, in the order of the source, which is that of the target."""
        return [one for one in self._parts if one.target != UNKNOWN]

    def target_of(self, offset: int) -> int | None:
        """Where a group continues that has committed this source offset: at the first replayed record at or after it.

        After all of them, behind the last one. None if the offset is outside of what was replayed, nothing was, or the
        cluster has not said the offset of that record.
        """
        if not self._parts or not self.start <= offset <= self.end:
            return None
        place = bisect_right(self._parts, offset, key=lambda one: one.source) - 1
        one, inside = self._parts[max(place, 0)], 0
        if place >= 0:
            inside = min(offset - one.source, one.records)
            if inside == one.records and place + 1 < len(self._parts):
                one, inside = self._parts[place + 1], 0
        return None if one.target == UNKNOWN else one.target + inside
