"""Polling: retries after failures without end, and recovery."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from kgctl.client.net.errors import AuthenticationFailed, KgctlError, Refused
from kgctl.tui.polling import LONGEST_RETRY_S, Polling


async def polled(ask: Callable[[], Awaitable[int]], until_asked: int, **freshness: object) -> Polling[int]:
    """The polling after `until_asked` calls, with a clock that jumps past every wait."""
    now_s = 0.0
    asked = asyncio.Event()
    count = 0

    async def counted() -> int:
        nonlocal count
        count += 1
        if count >= until_asked:
            asked.set()
        await asyncio.sleep(0)
        return await ask()

    def clock() -> float:
        nonlocal now_s
        now_s += LONGEST_RETRY_S
        return now_s

    polling: Polling[int] = Polling(counted, lambda _: None, lambda _: None, lambda: 2.0, clock)
    for name, value in freshness.items():
        setattr(polling.freshness, name, value)
    running = asyncio.ensure_future(polling.run())
    waiting = asyncio.ensure_future(asked.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=10)
    waiting.cancel()
    assert not running.done() or running.exception() is None, running.exception()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert count >= until_asked
    return polling


async def refuse() -> int:
    raise Refused("127.0.0.1:1: connection refused")


def test_polling_continues_after_a_hundred_thousand_failures() -> None:
    error: KgctlError = Refused("connection refused")
    polling = asyncio.run(polled(refuse, 3, attempts=100_000, error=error, failed_at_s=0.0))
    assert polling.freshness.attempts >= 100_002
    assert polling.freshness.failed_at_s == 0.0


def test_after_a_final_failure_it_asks_only_on_request() -> None:
    asked = 0

    async def play() -> None:
        nonlocal asked

        async def deny() -> int:
            nonlocal asked
            asked += 1
            raise AuthenticationFailed("wrong credentials")

        polling: Polling[int] = Polling(deny, lambda _: None, lambda _: None, lambda: 0.0, lambda: float(asked))
        running = asyncio.ensure_future(polling.run())
        while not asked:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert asked == 1
        polling.now()
        while asked < 2:
            await asyncio.sleep(0)
        running.cancel()

    asyncio.run(asyncio.wait_for(play(), 10))


def test_an_answer_resets_the_count_of_failures() -> None:
    async def answer() -> int:
        return 7

    polling = asyncio.run(polled(answer, 2, attempts=3, error=Refused("connection refused"), failed_at_s=0.0))
    assert (polling.last, polling.freshness.error, polling.freshness.attempts) == (7, None, 0)
