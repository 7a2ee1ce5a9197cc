"""The running asyncio loop as a reactor, for the faces that await."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable


class LoopReactor:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._timer: asyncio.TimerHandle | None = None
        self._is_awake = False
        self._is_stopped = False
        self._turn: Callable[[], int | None] = lambda: None

    def start(self, turn: Callable[[], int | None]) -> None:
        self._turn = turn
        self.wake()

    def wake(self) -> None:
        if self._is_awake:
            return
        self._is_awake = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            if threading.get_ident() == self._thread_id:
                self._loop.call_soon(self._run_awake)
            else:
                self._loop.call_soon_threadsafe(self._run_awake)

    def watch(self, descriptor: int, readable: Callable[[], bool]) -> None:
        self._loop.add_reader(descriptor, self._ready, readable)

    def watch_writable(self, descriptor: int, writable: Callable[[], bool] | None) -> None:
        if writable is None:
            self._loop.remove_writer(descriptor)
        else:
            self._loop.add_writer(descriptor, self._ready, writable)

    def unwatch(self, descriptor: int) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(descriptor)
            self._loop.remove_writer(descriptor)

    def is_inside(self) -> bool:
        return threading.get_ident() == self._thread_id

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _ready(self, callback: Callable[[], bool]) -> None:
        if callback():
            self._run()

    def _run_awake(self) -> None:
        if self._is_awake:
            self._run()

    def _run_timer(self) -> None:
        self._timer = None
        self._run()

    def _run(self) -> None:
        self._is_awake = False
        if self._is_stopped:
            return
        left = self._turn()
        if left is None or self._is_stopped:
            return
        # A timer that is early costs a turn without work, but timers of requests would be made and cancelled all the time.
        due = self._loop.time() + left / 1000
        if self._timer is None or due < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(due, self._run_timer)

    def join(self, timeout: float | None) -> bool:
        return self._is_stopped
