"""Keyed deadlines on an explicit clock: set, cancel, and take what is due."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TypeAlias

Key: TypeAlias = "tuple[str, ...]"


class Timers:
    """At most one deadline a key.

    Restarting a session is the most frequent act of a broker, so it must not touch the heap: a key keeps one heap entry that
    is never later than its deadline, and an entry that comes up too early is put back at the deadline of that moment.
    """

    __slots__ = ("_count", "_deadlines", "_heap", "_queued")

    def __init__(self) -> None:
        self._deadlines: dict[Key, int] = {}
        self._queued: dict[Key, int] = {}  # number of the one heap entry that speaks for the key
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
        """Let the key be due at the deadline, in place of the one that it had."""
        before = self._deadlines.get(key)
        self._deadlines[key] = deadline_ms
        if before is None or deadline_ms < before:
            self._push(key, deadline_ms)

    def cancel(self, key: Key) -> None:
        if self._deadlines.pop(key, None) is not None:
            del self._queued[key]

    def wake_at(self) -> int | None:
        """A time no later than the earliest deadline; it may be earlier by what a restarted key has gained."""
        heap, queued = self._heap, self._queued
        while heap and queued.get(heap[0][2]) != heap[0][1]:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now_ms: int) -> Key | None:
        """The key that is due first, taken out."""
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
        # Cancelled keys leave their entries behind for up to a session timeout; without this a client could pile them up.
        if len(self._heap) > 2 * len(self._deadlines) + 64:
            self._heap = [entry for entry in self._heap if self._queued.get(entry[2]) == entry[1]]
            heapify(self._heap)
