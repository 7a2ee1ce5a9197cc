"""Polling without overlap: it keeps asking, tracks how old the last answer is, and retries after a failure."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import KgctlError

T = TypeVar("T")
FIRST_RETRY_S, LONGEST_RETRY_S = 0.5, 5.0
# The wait has reached its limit long before; after a night of failures 2 ** attempts would overflow a float.
DOUBLINGS = 8


@dataclass(slots=True)
class Freshness:
    """When the last answer arrived, how long it took, and the error if later attempts failed."""

    answered_at_s: float | None = None
    took_s: float = 0.0
    error: KgctlError | None = None
    failed_at_s: float | None = None
    attempts: int = 0
    next_at_s: float = 0.0

    @property
    def is_lost(self) -> bool:
        return self.error is not None


class Polling(Generic[T]):
    """Calls `ask` until it is cancelled, one call at a time, and passes on the answers.

    Times are seconds of `clock`. The next call waits for the interval, and at least as long as the last answer took: a slow
    cluster is asked less often. After a failure it retries after 0.5 s, 1 s, ... up to 5 s; after a final one only on request.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[T]],
        answered: Callable[[T], None],
        failed: Callable[[KgctlError], None],
        interval_s: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self.freshness = Freshness()
        self._ask, self._answered, self._failed = ask, answered, failed
        self._interval_s, self._clock = interval_s, clock
        self._wanted = asyncio.Event()
        self._is_waiting = False
        self.is_paused = False
        self.answers = 0
        self.last: T | None = None

    @property
    def idle(self) -> bool:
        """Whether it waits for the next time, and no answer is wanted at once."""
        return self._is_waiting and not self._wanted.is_set()

    def now(self) -> None:
        """Ask at once, or as soon as the call in progress has ended."""
        self._wanted.set()

    async def run(self) -> None:
        while True:
            self._wanted.clear()
            await self._once()
            self._is_waiting = True
            await self._wait()
            self._is_waiting = False

    async def _once(self) -> None:
        fresh, started = self.freshness, self._clock()
        try:
            answer = await self._ask()
        except KgctlError as error:
            fresh.failed_at_s = self._clock() if fresh.error is None else fresh.failed_at_s
            fresh.error, fresh.attempts = error, fresh.attempts + 1
            self._failed(error)
            return
        fresh.answered_at_s = self._clock()
        fresh.took_s = fresh.answered_at_s - started
        fresh.error, fresh.failed_at_s, fresh.attempts = None, None, 0
        self.answers, self.last = self.answers + 1, answer
        self._answered(answer)

    async def _wait(self) -> None:
        fresh = self.freshness
        ended_s = self._clock()
        while not self._wanted.is_set():
            if fresh.error is not None and fresh.error.is_final:
                wait_s = math.inf
            elif fresh.error is not None:
                wait_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2 ** min(fresh.attempts - 1, DOUBLINGS))
            else:
                wait_s = max(self._interval_s() - fresh.took_s, fresh.took_s)
            fresh.next_at_s = ended_s + wait_s
            left_s = fresh.next_at_s - self._clock()
            if left_s <= 0 and not self.is_paused:
                return
            # Short steps, because the interval may change meanwhile and a pause may end.
            try:
                await asyncio.wait_for(self._wanted.wait(), 0.25 if self.is_paused else min(max(left_s, 0.0), 0.25))
            except TimeoutError:
                continue
