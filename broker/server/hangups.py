"""HangupWatch: notices that a client has disconnected while the broker does not read from it."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

# Connections that one turn of the event loop ends, before other clients get their turn.
ENDS_PER_TURN = 100


class HangupWatch:
    """Watches sockets for their end alone, not for data, so that unread data costs nothing.

    An event loop can only wait for data and the end at once. The sockets are in a poller of their own, which the event loop
    watches like a socket.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._poller = _Poller()
        self._watched: dict[int, Callable[[], None]] = {}
        loop.add_reader(self._poller.fileno(), self._poll)

    def __len__(self) -> int:
        return len(self._watched)

    def watch(self, file: int, ended: Callable[[], None]) -> None:
        """Call `ended` once if the client of the socket `file` closes, half-closes or resets the connection."""
        try:
            self._poller.add(file)
        except OSError:
            # The system watches no more sockets; the end is noticed when the client's next request is read.
            return
        self._watched[file] = ended

    def forget(self, file: int) -> None:
        """Stop watching. Call it before the socket is closed."""
        if self._watched.pop(file, None) is not None:
            self._poller.remove(file)

    def close(self) -> None:
        self._loop.remove_reader(self._poller.fileno())
        self._poller.close()
        self._watched.clear()

    def _poll(self) -> None:
        for file in self._poller.ended():
            ended = self._watched.get(file)
            if ended is not None:
                self.forget(file)
                ended()


if sys.platform == "linux":

    class _Poller:
        def __init__(self) -> None:
            self._epoll = select.epoll()
            self.fileno, self.close = self._epoll.fileno, self._epoll.close

        def add(self, file: int) -> None:
            # EPOLLHUP and EPOLLERR are always on.
            self._epoll.register(file, select.EPOLLRDHUP)

        def remove(self, file: int) -> None:
            self._epoll.unregister(file)

        def ended(self) -> list[int]:
            return [file for file, _ in self._epoll.poll(0, ENDS_PER_TURN)]

else:

    class _Poller:
        def __init__(self) -> None:
            self._kqueue = select.kqueue()
            self.fileno, self.close = self._kqueue.fileno, self._kqueue.close

        def add(self, file: int) -> None:
            # A low-water mark that data never reaches leaves the end; EV_CLEAR reports a full buffer once.
            flags = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            self._change(select.kevent(file, select.KQ_FILTER_READ, flags, select.KQ_NOTE_LOWAT, 0x7FFFFFFF))

        def remove(self, file: int) -> None:
            self._change(select.kevent(file, select.KQ_FILTER_READ, select.KQ_EV_DELETE))

        def ended(self) -> list[int]:
            found = self._kqueue.control(None, ENDS_PER_TURN, 0)
            return [event.ident for event in found if event.flags & (select.KQ_EV_EOF | select.KQ_EV_ERROR)]

        def _change(self, event: select.kevent) -> None:
            self._kqueue.control([event], 0)
