"""Flush: replies wait until everything they report is durable; one flush serves all that wait in a loop turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from broker.server.request_times import FLUSH
from broker.storage import StorageError

if TYPE_CHECKING:
    import asyncio

    from broker.server.exchange import Exchange, Origin
    from broker.server.request_times import RequestTimes


class Flushable(Protocol):
    """What the flusher uses of the log."""

    @property
    def dirty(self) -> bool: ...
    def flush(self) -> None: ...


class Flusher:
    """Holds replies while the log has unflushed writes. The first failure is final: no reply is sent after it.

    `failure` is the one place where the server keeps the cause. `times`, if set, gets the time of each flush.
    """

    def __init__(
        self,
        log: Flushable,
        loop: asyncio.AbstractEventLoop,
        *,
        flushed: Callable[[], None],
        wake: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Call `flushed` after writes became durable, `wake` after the replies of a flush, `failed` at the first failure."""
        self._log = log
        self._loop = loop
        self._flushed = flushed
        self._wake = wake
        self._failed = failed
        self._held: list[Exchange] = []
        self._scheduled = False
        self.times: RequestTimes | None = None
        self.failure: BaseException | None = None

    def release(self, exchange: Exchange) -> None:
        """Release an answered exchange: now, or after the flush of what was written before it."""
        if self.failure is not None:
            return
        if self._log.dirty:
            self._held.append(exchange)
            self.schedule()
        else:
            exchange.released = True
            exchange.connection.released()

    def schedule_if_dirty(self) -> None:
        if self._log.dirty:
            self.schedule()

    def schedule(self) -> None:
        """Flush at the end of this loop turn."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Make all writes durable, then release the held replies in order."""
        self._scheduled = False
        if self.failure is not None:
            return
        if self._log.dirty:
            try:
                self._flush_log()
            except StorageError as error:
                self.fail(error)
                return
            except Exception as error:
                self.fail(error)
                raise
            self._flushed()
        held, self._held = self._held, []
        connections: dict[Origin, None] = {}
        for exchange in held:
            exchange.released = True
            connections[exchange.connection] = None
        for connection in connections:
            connection.released()
        self._wake()

    def _flush_log(self) -> None:
        if self.times is None:
            self._log.flush()
            return
        begun_s = self._loop.time()
        self._log.flush()
        self.times.add(FLUSH, self._loop.time() - begun_s)

    def fail(self, cause: BaseException) -> None:
        """Send no reply from now on: it is unknown whether the last writes are durable."""
        if self.failure is None:
            self.failure = cause
            self._held.clear()
            self._failed(cause)
