"""All connections of the broker: what they share, how many there may be, and which have been idle too long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.protocol.frames import FrameBuffer
from broker.server.connection import Connection

if TYPE_CHECKING:
    from broker.server.commit_rounds import CommitRounds
    from broker.server.router import Router

# What all unfinished requests together may take up, or two of the largest if that is more.
UNFINISHED_BYTES = 256 * 1024 * 1024
# How many times in the idle limit idle connections are looked for.
IDLE_CHECKS = 10


class Connections:
    """Makes a Connection per client and forgets it when it is lost."""

    def __init__(
        self,
        router: Router,
        rounds: CommitRounds,
        loop: asyncio.AbstractEventLoop,
        *,
        uncommitted: Callable[[], bool],
        frame_bytes: int,
        idle_ms: int,
        most: int,
        most_per_host: int,
    ) -> None:
        self.router = router
        self.rounds = rounds
        self.loop = loop
        self.uncommitted = uncommitted
        self.log = logging.getLogger("broker.server")
        # Called when a connection has gone.
        self.when_room: Callable[[], None] = lambda: None
        self._frame_bytes = frame_bytes
        self._idle_s = idle_ms / 1000
        self._most = most
        self._most_per_host = most_per_host
        self._open: set[Connection] = set()
        self._per_host: dict[str, int] = {}
        self._idle_timer: asyncio.TimerHandle | None = None
        self._unfinished: dict[Connection, int] = {}
        self._unfinished_bytes = 0
        self._unfinished_limit = max(UNFINISHED_BYTES, 2 * frame_bytes)

    def __len__(self) -> int:
        return len(self._open)

    def room(self) -> int:
        """How many more connections there may be."""
        return self._most - len(self._open)

    def accept(self) -> Connection:
        """The protocol factory of the listening socket."""
        return Connection(self)

    def new_frame_buffer(self) -> FrameBuffer:
        return FrameBuffer(self._frame_bytes)

    def admit(self, connection: Connection) -> bool:
        """Count a new connection; False if there are too many from its host."""
        host = connection.client_host
        count = self._per_host.get(host, 0)
        if count >= self._most_per_host:
            self.log.warning("refusing a connection of %s, which has %d", host, count)
            return False
        self._open.add(connection)
        self._per_host[host] = count + 1
        if self._idle_timer is None and self._idle_s > 0:
            self._idle_timer = self.loop.call_later(self._idle_s / IDLE_CHECKS, self._close_idle)
        return True

    def count_unfinished(self, connection: Connection, size: int) -> None:
        """Note how much of a request has arrived without its end. Beyond the limit the client with the most is cut off."""
        self._unfinished_bytes += size - self._unfinished.pop(connection, 0)
        if size:
            self._unfinished[connection] = size
        if self._unfinished_bytes > self._unfinished_limit:
            largest = max(self._unfinished, key=self._unfinished.__getitem__)
            self.log.warning("unfinished requests fill the memory: closing the connection of %s", largest.client_host)
            self._unfinished_bytes -= self._unfinished.pop(largest)
            largest.abort()

    def forget(self, connection: Connection) -> None:
        self._unfinished_bytes -= self._unfinished.pop(connection, 0)
        if connection in self._open:
            self._open.remove(connection)
            count = self._per_host.pop(connection.client_host) - 1
            if count:
                self._per_host[connection.client_host] = count
            self.when_room()

    def abort_all(self) -> None:
        """Close every connection now; unsent answers are lost."""
        for connection in list(self._open):
            connection.abort()

    async def close_all(self, grace_s: float) -> None:
        """Close every connection when its answers have left, or after `grace_s`."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        for connection in list(self._open):
            connection.finish()
        until = self.loop.time() + grace_s
        while self._open and self.loop.time() < until:
            await asyncio.sleep(0.005)
        self.abort_all()
        while self._open:
            await asyncio.sleep(0)

    def _close_idle(self) -> None:
        self._idle_timer = None
        since = self.loop.time() - self._idle_s
        for connection in list(self._open):
            if connection.active_at < since and not connection.parked:
                connection.abort()
        if self._open:
            self._idle_timer = self.loop.call_later(self._idle_s / IDLE_CHECKS, self._close_idle)
