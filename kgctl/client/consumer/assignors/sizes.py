"""Members in the order of how many partitions they have."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator

from kgctl.client.consumer.assignors.assignor import java_order


class Sizes:
    """How many partitions each member has; members with equally many are in Java's order of strings."""

    def __init__(self, sizes: Iterable[tuple[str, int]]) -> None:
        self._sizes = dict(sizes)
        self._names = sorted(self._sizes, key=java_order)
        self._rank = {name: rank for rank, name in enumerate(self._names)}
        self._order = sorted(self._key(name) for name in self._names)

    def __getitem__(self, member_id: str) -> int:
        return self._sizes[member_id]

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._sizes

    def __iter__(self) -> Iterator[str]:
        """From the smallest to the largest. The caller stops when it changes one."""
        count, names = len(self._names), self._names
        return (names[key % count] for key in self._order)

    def smallest(self) -> int:
        return self._order[0] // len(self._names)

    def largest(self) -> int:
        return self._order[-1] // len(self._names)

    def change(self, member_id: str, by: int) -> None:
        del self._order[bisect.bisect_left(self._order, self._key(member_id))]
        self._sizes[member_id] += by
        bisect.insort(self._order, self._key(member_id))

    def remove(self, member_id: str) -> None:
        """Leave the member out of the order."""
        del self._order[bisect.bisect_left(self._order, self._key(member_id))]
        del self._sizes[member_id]

    def _key(self, member_id: str) -> int:
        return self._sizes[member_id] * len(self._names) + self._rank[member_id]
