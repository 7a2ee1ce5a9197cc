"""A daemon thread that waits for sockets and times, for the faces that block."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import TypeAlias

_READ, _WRITE = select.POLLIN, select.POLLOUT
Callback: TypeAlias = "Callable[[], bool]"


class ThreadReactor:
    """poll() and no selector: a client has few sockets, and a selector costs as much as a short turn."""

    def __init__(self, name: str) -> None:
        self._poll = select.poll()
        self._callbacks: dict[int, tuple[Callback, Callback | None]] = {}
        self._inner, self._outer = socket.socketpair()
        self._inner.setblocking(False)
        self._outer.setblocking(False)
        self._wake_descriptor = self._inner.fileno()
        self._poll.register(self._wake_descriptor, _READ)
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
            try:
                self._outer.send(b"\0")
            except OSError:  # closed
                return

    def watch(self, descriptor: int, readable: Callback) -> None:
        self._callbacks[descriptor] = (readable, None)
        self._poll.register(descriptor, _READ)

    def watch_writable(self, descriptor: int, writable: Callback | None) -> None:
        self._callbacks[descriptor] = (self._callbacks[descriptor][0], writable)
        self._poll.modify(descriptor, _READ | _WRITE if writable else _READ)

    def unwatch(self, descriptor: int) -> None:
        if self._callbacks.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def is_inside(self) -> bool:
        return threading.get_ident() == self._thread.ident

    def stop(self) -> None:
        self._is_stopped = True

    def join(self, timeout: float | None) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        due: float | None = 0.0
        while not self._is_stopped:
            wait_ms = None if due is None else max(0.0, due - time.monotonic()) * 1000
            if self._serve(self._poll.poll(wait_ms)) or (due is not None and time.monotonic() >= due):
                left = self._turn()
                due = None if left is None else time.monotonic() + left / 1000
        self._inner.close()
        self._outer.close()

    def _serve(self, ready: list[tuple[int, int]]) -> bool:
        """Whether a turn is due."""
        is_due = False
        for descriptor, events in ready:
            if descriptor == self._wake_descriptor:
                with contextlib.suppress(OSError):
                    self._inner.recv(64)
                self._is_awake = False  # after the read: a later wake writes again
                is_due = True
                continue
            callbacks = self._callbacks.get(descriptor)
            if callbacks is None:
                continue  # an earlier one of these has closed it
            readable, writable = callbacks
            # An error or a hangup concerns both.
            if events & ~_WRITE and readable():
                is_due = True
            if events & ~_READ and writable is not None and writable():
                is_due = True
        return is_due
