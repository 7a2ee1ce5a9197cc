"""A daemon thread that waits for sockets and times, for the faces that block."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class ThreadReactor:
    def __init__(self, name: str) -> None:
        self._selector = selectors.DefaultSelector()
        self._inner, self._outer = socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)
        self._selector.register(self._inner, _READ, None)
        self._is_awake = False
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._turn: Callable[[], int | None] = lambda: None

    def start(self, turn: Callable[[], int | None]) -> None:
        self._turn = turn
        self._thread.start()

    def wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            with contextlib.suppress(OSError):
                self._outer.send(b"\0")

    def watch(self, descriptor: int, readable: Callable[[], None]) -> None:
        self._selector.register(descriptor, _READ, (readable, None))

    def watch_writable(self, descriptor: int, writable: Callable[[], None] | None) -> None:
        readable = self._selector.get_key(descriptor).data[0]
        self._selector.modify(descriptor, _READ | _WRITE if writable else _READ, (readable, writable))

    def unwatch(self, descriptor: int) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(descriptor)

    def is_inside(self) -> bool:
        return threading.get_ident() == self._thread.ident

    def stop(self) -> None:
        self._is_stopped = True

    def join(self, timeout: float | None) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        wait: float | None = 0.0
        while not self._is_stopped:
            for key, events in self._selector.select(wait):
                if key.data is None:
                    with contextlib.suppress(OSError):
                        self._inner.recv(64)
                    self._is_awake = False  # after the read: a later wake writes again
                    continue
                readable, writable = key.data
                if events & _READ:
                    readable()
                if events & _WRITE and writable is not None:
                    writable()
            left = self._turn()
            wait = None if left is None else left / 1000
        self._selector.close()
        self._inner.close()
        self._outer.close()
