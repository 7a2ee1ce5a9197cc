"""A set of batch ids that never forgets one and stays small: ids that end in consecutive numbers are kept as ranges."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping

_NUMBERED = re.compile(r"(.*?)(\d*)", re.DOTALL)

# Prefix and number of digits of an id.
_Family = tuple[str, int]


class KnownIds:
    """Immutable. An id is its prefix and the digits at its end; each range has its first and its last number."""

    def __init__(self, ranges: Mapping[_Family, list[tuple[int, int]]] | None = None) -> None:
        self._ranges = dict(ranges or {})

    def __contains__(self, batch_id: str) -> bool:
        family, number = family_of(batch_id)
        ranges = self._ranges.get(family, [])
        at = bisect_right(ranges, number, key=lambda one: one[0]) - 1
        return at >= 0 and number <= ranges[at][1]

    def __len__(self) -> int:
        return sum(last - first + 1 for ranges in self._ranges.values() for first, last in ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownIds) and self._ranges == other._ranges

    __hash__ = None  # type: ignore[assignment]

    def with_ids(self, batch_ids: Iterable[str]) -> KnownIds:
        added: dict[_Family, list[tuple[int, int]]] = {}
        for batch_id in batch_ids:
            family, number = family_of(batch_id)
            added.setdefault(family, []).append((number, number))
        changed = {family: _joined([*self._ranges.get(family, []), *more]) for family, more in added.items()}
        return KnownIds({**self._ranges, **changed})

    def to_json(self) -> list[list[object]]:
        """[prefix, digits, [numbers left out, length - 1, ...]] for each kind of id."""
        found: list[list[object]] = []
        for (prefix, digits), ranges in sorted(self._ranges.items()):
            steps, end = [], -1
            for first, last in ranges:
                steps += [first - end - 1, last - first]
                end = last
            found.append([prefix, digits, steps])
        return found


def known_ids(content: list[list[object]]) -> KnownIds:
    """From what `to_json` gave. Raises TypeError or ValueError."""
    found: dict[_Family, list[tuple[int, int]]] = {}
    for prefix, digits, steps in content:
        if not (isinstance(prefix, str) and isinstance(digits, int) and isinstance(steps, list)):
            raise TypeError("batch ids")
        ranges, end = [], -1
        for left_out, more in zip(steps[::2], steps[1::2], strict=True):
            first = end + 1 + left_out
            end = first + more
            ranges.append((first, end))
        found[prefix, digits] = ranges
    return KnownIds(found)


def family_of(batch_id: str) -> tuple[_Family, int]:
    """Prefix and number of digits, and the number; 0 if there is none."""
    parts = _NUMBERED.fullmatch(batch_id)
    assert parts is not None
    prefix, digits = parts.groups()
    return (prefix, len(digits)), int(digits or 0)


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined
