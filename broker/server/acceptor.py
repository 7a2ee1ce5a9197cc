"""The listening socket: accepts clients while there is room for them; the others wait outside."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

# Accepted before connections that are there already get their turn.
ACCEPTS_PER_TURN = 100
REST_S = 1.0
# One line of the same complaint in so long.
COMPLAINT_S = 10.0
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

logger = logging.getLogger("broker.server")


class Acceptor:
    """asyncio's own server knows no limit, and repeats its complaint for every place in the backlog when files run out."""

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], asyncio.Protocol],
        room: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`room` says how many more connections there may be."""
        self._socket = listening
        self._make = make
        self._room = room
        self._loop = loop
        self._starting: set[asyncio.Task[object]] = set()
        self._accepting = False
        self._rest: asyncio.TimerHandle | None = None
        self._complain_from = 0.0

    def start(self, backlog: int) -> None:
        self._socket.listen(backlog)
        self.go_on()

    def go_on(self) -> None:
        """There is room again."""
        if not self._accepting and self._rest is None and self._socket.fileno() >= 0:
            self._accepting = True
            self._loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        self._pause()
        if self._rest is not None:
            self._rest.cancel()
        self._socket.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if self._room() <= len(self._starting):
                self._complain("as many connections as there may be; more have to wait")
                self._pause()
                return
            try:
                client, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._complain(f"cannot accept connections: {error.strerror}")
                self._pause()
                self._rest = self._loop.call_later(REST_S, self._rested)
                return
            client.setblocking(False)
            task: asyncio.Task[object] = self._loop.create_task(self._connect(client))
            self._starting.add(task)
            task.add_done_callback(self._started)

    def _pause(self) -> None:
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._socket)

    def _rested(self) -> None:
        self._rest = None
        self.go_on()

    def _started(self, task: asyncio.Task[object]) -> None:
        self._starting.discard(task)
        self.go_on()

    async def _connect(self, client: socket.socket) -> None:
        try:
            # A host that vanished says nothing; with a request that waits, its connection is not idle.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            await self._loop.connect_accepted_socket(self._make, client)
        except OSError:
            # Gone before it was greeted.
            client.close()

    def _complain(self, line: str) -> None:
        now = self._loop.time()
        if now >= self._complain_from:
            self._complain_from = now + COMPLAINT_S
            logger.warning("%s", line)
