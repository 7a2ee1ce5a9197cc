"""Parked fetches: the partitions that they watch and their deadlines. One timer serves them all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Protocol

from broker.storage import StorageError

if TYPE_CHECKING:
    import asyncio

logger = logging.getLogger("broker.server")

PartitionKey = tuple[str, int]


class Wait(Protocol):
    """A parked fetch, which waits for partitions to grow."""

    @property
    def keys(self) -> Iterable[PartitionKey]:
        """The partitions that the fetch watches."""
        ...

    def attempt(self, *, final: bool) -> bool:
        """Answer if there is enough to read, and always if `final`. Returns whether it answered."""
        ...

    def abort(self) -> None:
        """Close the connection; the fetch gets no answer."""
        ...


class FetchWaiters:
    """Attempts a wait when a watched partition grows or its deadline passes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fail: Callable[[BaseException], None], longest_ms: int) -> None:
        """`fail` takes a StorageError, which stops the broker. No fetch waits longer than `longest_ms`, if that is positive."""
        self._loop = loop
        self._fail = fail
        self._longest_ms = longest_ms
        # Dictionaries serve as ordered sets: the longest wait is served first.
        self._watching: dict[PartitionKey, dict[Wait, None]] = {}
        self._moved: dict[PartitionKey, None] = {}
        self._waits: dict[Wait, tuple[float, tuple[PartitionKey, ...]]] = {}
        self._deadlines: list[tuple[float, int, Wait]] = []
        self._order = count()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waits)

    def park(self, wait: Wait, max_wait_ms: int) -> None:
        """Keep `wait` until it answers. After `max_wait_ms` comes its final attempt."""
        if self._longest_ms > 0:
            max_wait_ms = min(max_wait_ms, self._longest_ms)
        deadline = self._loop.time() + max_wait_ms / 1000
        keys = tuple(wait.keys)
        self._waits[wait] = deadline, keys
        for key in keys:
            self._watching.setdefault(key, {})[wait] = None
        heappush(self._deadlines, (deadline, next(self._order), wait))
        if len(self._deadlines) > 64 and len(self._deadlines) > 2 * len(self._waits):
            self._deadlines = sorted(entry for entry in self._deadlines if entry[2] in self._waits)
        self._arm()

    def drop(self, wait: Wait) -> None:
        """Forget a wait that needs no answer."""
        found = self._waits.pop(wait, None)
        if found is None:
            return
        for key in found[1]:
            watchers = self._watching.get(key)
            if watchers is not None:
                watchers.pop(wait, None)
                if not watchers:
                    del self._watching[key]

    def moved(self, topic: str, partition: int) -> None:
        """Note that a partition has grown; `wake` serves its waits once the records are durable.

        Partitions without a wait count too: a fetch may park before the flush.
        """
        self._moved[topic, partition] = None

    def wake(self) -> None:
        """Attempt every wait that watches a partition that has grown."""
        if not self._moved:
            return
        moved, self._moved = self._moved, {}
        due: dict[Wait, None] = {}
        for key in moved:
            due.update(self._watching.get(key, {}))
        for wait in due:
            if wait in self._waits and self._attempt(wait, final=False):
                self.drop(wait)

    def topic_gone(self, topic: str) -> None:
        """Finish every wait that watches a deleted topic."""
        for key in [key for key in self._watching if key[0] == topic]:
            for wait in list(self._watching.get(key, {})):
                self._finish(wait)

    def end_all(self) -> None:
        """Answer every wait with what there is to read."""
        for wait in list(self._waits):
            self._finish(wait)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _finish(self, wait: Wait) -> None:
        if wait in self._waits:
            self.drop(wait)
            self._attempt(wait, final=True)

    def _attempt(self, wait: Wait, *, final: bool) -> bool:
        """Attempt a wait. An error closes the connection of this fetch and does not affect other fetches."""
        try:
            return wait.attempt(final=final)
        except StorageError as error:
            self._fail(error)
        except Exception:
            logger.exception("a parked fetch failed")
            wait.abort()
        return True

    def _arm(self) -> None:
        """Set the timer to the first deadline of a wait that is still parked."""
        while self._deadlines and self._deadlines[0][2] not in self._waits:
            heappop(self._deadlines)
        if not self._deadlines:
            return
        first = self._deadlines[0][0]
        if self._timer is not None:
            if self._timer.when() <= first:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(first, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._deadlines and self._deadlines[0][0] <= now:
            self._finish(heappop(self._deadlines)[2])
        self._arm()
