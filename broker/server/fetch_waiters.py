"""Parked fetches: what they watch, when they expire. One timer serves them all."""

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
    """Something that waits for partitions to grow."""

    @property
    def keys(self) -> Iterable[PartitionKey]:
        """The partitions that it watches."""
        ...

    def attempt(self, *, final: bool) -> bool:
        """Answer if there is enough by now, or in any case if `final`; whether it answered."""
        ...

    def abort(self) -> None:
        """Close the connection: there will be no answer."""
        ...


class FetchWaiters:
    """Wakes waits when a watched partition moves or their time is up."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fail: Callable[[BaseException], None]) -> None:
        """`fail` is called with a StorageError, which ends the broker."""
        self._loop = loop
        self._fail = fail
        # Dictionaries as ordered sets: who waits longest is served first.
        self._watching: dict[PartitionKey, dict[Wait, None]] = {}
        self._moved: dict[PartitionKey, None] = {}
        self._waits: dict[Wait, tuple[float, tuple[PartitionKey, ...]]] = {}
        self._deadlines: list[tuple[float, int, Wait]] = []
        self._order = count()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waits)

    def park(self, wait: Wait, max_wait_ms: int) -> None:
        """Keep `wait` until it answers; after `max_wait_ms` it is attempted for the last time."""
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
        """Forget a wait that needs no answer any more."""
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
        """Note that a partition has grown; `wake` looks at it once that is durable.

        Also if nobody watches yet: a fetch may park before the round.
        """
        self._moved[topic, partition] = None

    def wake(self) -> None:
        """Attempt every wait that watches a partition that moved."""
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
        """End every wait that watches a topic which is deleted."""
        for key in [key for key in self._watching if key[0] == topic]:
            for wait in list(self._watching.get(key, {})):
                self._finish(wait)

    def end_all(self) -> None:
        """Answer everyone with what there is."""
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
        """What goes wrong with one fetch is not to keep the others from theirs."""
        try:
            return wait.attempt(final=final)
        except StorageError as error:
            self._fail(error)
        except Exception:
            logger.exception("a fetch that had waited failed")
            wait.abort()
        return True

    def _arm(self) -> None:
        """Set the timer for the first deadline of a wait that is still there."""
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
