"""Commit rounds: answers wait until what they tell is durable, and one commit serves all who wait in a loop turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from broker.storage import StorageError

if TYPE_CHECKING:
    import asyncio

    from broker.server.connection import Connection
    from broker.server.exchange import Exchange


class Committing(Protocol):
    """What a round needs of the log."""

    @property
    def dirty(self) -> bool: ...
    def flush(self) -> None: ...


class CommitRounds:
    """Holds answers back while the log has uncommitted writes. A failed commit is final: `fail` is called, no answer leaves."""

    def __init__(
        self,
        log: Committing,
        loop: asyncio.AbstractEventLoop,
        *,
        committed: Callable[[], None],
        wake: Callable[[], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._log = log
        self._loop = loop
        self._committed = committed
        self._wake = wake
        self._fail = fail
        self._held: list[Exchange] = []
        self._scheduled = False
        self.failed = False

    def settle(self, exchange: Exchange) -> None:
        """Release an answered exchange now, or after the round that makes durable what came before it."""
        if self.failed:
            return
        if self._log.dirty:
            self._held.append(exchange)
            self.schedule()
        else:
            exchange.released = True
            exchange.connection.released()

    def schedule(self) -> None:
        """Ask for a round at the end of this loop turn."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.run)

    def run(self) -> None:
        """Commit what waits, then let go of the answers in order."""
        self._scheduled = False
        if self.failed:
            return
        if self._log.dirty:
            try:
                self._log.flush()
            except StorageError as error:
                self.stop(error)
                return
            except Exception as error:
                self.stop(error)
                raise
            self._committed()
        held, self._held = self._held, []
        connections: dict[Connection, None] = {}
        for exchange in held:
            exchange.released = True
            connections[exchange.connection] = None
        for connection in connections:
            connection.released()
        self._wake()

    def stop(self, cause: BaseException) -> None:
        """No answer leaves from now on: whether the last writes are durable is not known."""
        if not self.failed:
            self.failed = True
            self._held.clear()
            self._fail(cause)
