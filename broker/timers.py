"""Keyed deadlines on an explicit clock."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TypeAlias

Key: TypeAlias = "tuple[str, ...]"


class Timers:
    """At most one deadline per key.

    Restarting a session is the most frequent operation of a broker, so it does not touch the heap. A key has one heap entry, never
    later than its deadline; an entry that comes up too early is pushed again with the deadline that the key has then.
    """

    __slots__ = ("_count", "_deadlines", "_heap", "_queued")

    def __init__(self) -> None:
        self._deadlines: dict[Key, int] = {}
        self._queued: dict[Key, int] = {}  # key -> number of its valid heap entry
        self._heap: list[tuple[int, int, Key]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, key: Key) -> bool:
        return key in self._deadlines

    def deadlines(self) -> dict[Key, int]:
        """Every key with its deadline."""
        return dict(self._deadlines)

    def set(self, key: Key, deadline_ms: int) -> None:
        """Set or replace the deadline of a key."""
        before = self._deadlines.get(key)
        self._deadlines[key] = deadline_ms
        if before is None or deadline_ms < before:
            self._push(key, deadline_ms)

    def cancel(self, key: Key) -> None:
        if self._deadlines.pop(key, None) is not None:
            del self._queued[key]

    def wake_at(self) -> int | None:
        """A time no later than the earliest deadline. It may be earlier, if a restart has moved a deadline back."""
        heap, queued = self._heap, self._queued
        while heap and queued.get(heap[0][2]) != heap[0][1]:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now_ms: int) -> Key | None:
        """Take out the key that is due first; None if no key is due."""
        while (heap := self._heap) and heap[0][0] <= now_ms:
            queued_ms, number, key = heappop(heap)
            if self._queued.get(key) != number:
                continue
            deadline = self._deadlines[key]
            if deadline > queued_ms:
                self._push(key, deadline)
                continue
            del self._deadlines[key], self._queued[key]
            return key
        return None

    def _push(self, key: Key, deadline_ms: int) -> None:
        self._count += 1
        self._queued[key] = self._count
        heappush(self._heap, (deadline_ms, self._count, key))
        # Entries of cancelled keys stay for up to a session timeout. Without this limit a client could fill the memory with them.
        if len(self._heap) > 2 * len(self._deadlines) + 64:
            self._heap = [entry for entry in self._heap if self._queued.get(entry[2]) == entry[1]]
            heapify(self._heap)
