"""Simulated time: a queue of everything that happens outside the broker, and the event loop that the broker runs in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

MS, SECOND = 1_000, 1_000_000  # in microseconds


class Clock:
    """Time advances only in `step`, to the next scheduled event. Events at the same time run in the order of scheduling."""

    def __init__(self) -> None:
        self.us = SECOND
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, us: int, run: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heappush(self._queue, (max(us, self.us), self._count, run, arguments))

    def later(self, us: int, run: Callable[..., None], *arguments: Any) -> None:
        self.at(self.us + us, run, *arguments)

    def next_us(self) -> int | None:
        return self._queue[0][0] if self._queue else None

    def step(self) -> None:
        self.us, _, run, arguments = heappop(self._queue)
        run(*arguments)


class Handle:
    """A callback of the loop that can be cancelled, like asyncio's handles."""

    __slots__ = ("_when", "arguments", "cancelled", "run")

    def __init__(self, when: float, run: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._when = when
        self.run = run
        self.arguments = arguments
        self.cancelled = False

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        self.cancelled = True


class BrokerLoop:
    """The part of asyncio's loop that the runner uses, in asyncio's order: sockets, then due timers, then callbacks.

    While the broker is busy (a slow sync, a stopped process), the world continues, and incoming requests wait.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._busy_until_us = clock.us
        self._inbox: deque[Handle] = deque()
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[int, int, Handle]] = []
        self._count = 0
        self._has_asked = False
        self.dead = False
        self.callbacks = 0

    # ---- asyncio's interface -----------------------------------------------------------------------------------------

    def time(self) -> float:
        return self.now_us / SECOND

    def call_soon(self, run: Callable[..., None], *arguments: Any) -> Handle:
        handle = Handle(self.time(), run, arguments)
        self._ready.append(handle)
        return handle

    def call_later(self, delay: float, run: Callable[..., None], *arguments: Any) -> Handle:
        return self.call_at(self.time() + delay, run, *arguments)

    def call_at(self, when: float, run: Callable[..., None], *arguments: Any) -> Handle:
        handle = Handle(when, run, arguments)
        self._count += 1
        heappush(self._timers, (round(when * SECOND), self._count, handle))
        return handle

    # ---- for the world -----------------------------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        return max(self._clock.us, self._busy_until_us)

    @property
    def idle(self) -> bool:
        """Whether nothing is due."""
        next_us = self.next_turn_us()
        return next_us is None or next_us > self.now_us

    def deliver(self, run: Callable[..., None], *arguments: Any) -> None:
        """Something has arrived on a socket."""
        self._inbox.append(Handle(0.0, run, arguments))

    def be_busy(self, us: int) -> None:
        self._busy_until_us = self.now_us + us

    def stop(self, us: int) -> None:
        """Stop the process at the worst moment: after it polled its sockets, before it runs its timers."""
        self.be_busy(us)
        self._has_asked = True

    def unread(self) -> list[Any]:
        """What has arrived and was not read yet."""
        return [handle.arguments[0] for handle in self._inbox if handle.arguments]

    def next_turn_us(self) -> int | None:
        """When the next turn has something to do."""
        while self._timers and self._timers[0][2].cancelled:
            heappop(self._timers)
        if self.dead:
            return None
        if self._ready or self._inbox:
            return self.now_us
        return max(self.now_us, self._timers[0][0]) if self._timers else None

    def turn(self) -> None:
        """Run one turn of the loop. A broker that crashes in it does nothing more."""
        ready, now_us = self._ready, self.now_us
        if not self._has_asked:
            ready.extend(self._inbox)
            self._inbox.clear()
        self._has_asked = False
        while self._timers and self._timers[0][0] <= now_us:
            ready.append(heappop(self._timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled and not self.dead:
                self.callbacks += 1
                handle.run(*handle.arguments)
