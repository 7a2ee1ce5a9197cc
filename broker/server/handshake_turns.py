"""HandshakeTurns: TLS handshakes take turns, so that many clients that connect at once do not stall those that are served."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

# How long handshakes may compute in one turn of the event loop. One takes up to some milliseconds, with a large RSA key.
TURN_S = 0.005


class HandshakeTurns:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._turn: asyncio.Handle | None = None

    def run(self, step: Callable[[], None]) -> None:
        """Run a step of a handshake in this turn of the event loop, or in one of the next."""
        self._waiting.append(step)
        if self._turn is None:
            self._turn = self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._turn = None
        until = self._loop.time() + TURN_S
        try:
            while self._waiting:
                self._waiting.popleft()()
                if self._loop.time() >= until:
                    break
        finally:
            if self._waiting:
                self._turn = self._loop.call_soon(self._run)
