"""Syncs of several files at the same time: a disk serves them together, in little more time than one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


class Syncs:
    """The threads that sync. They start with the first flush of two files, and end with this object."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._threads: ThreadPoolExecutor | None = None

    def run(self, syncs: Sequence[Callable[[], None]]) -> None:
        """Call all of them and wait until all have ended. An error is raised then."""
        left = deque(syncs)
        begun = self._start(left, min(len(syncs), self._at_once) - 1)
        try:
            _call(left)
        finally:
            errors = [found for part in begun if (found := part.exception()) is not None]
        if errors:
            raise errors[0]

    def _start(self, left: deque[Callable[[], None]], count: int) -> list[Future[None]]:
        """Let more threads take from what is left: as many as the system has."""
        begun: list[Future[None]] = []
        try:
            if count > 0 and self._threads is None:
                from concurrent.futures import ThreadPoolExecutor

                self._threads = ThreadPoolExecutor(self._at_once - 1, thread_name_prefix="sync")
            while len(begun) < count and self._threads is not None:
                begun.append(self._threads.submit(_call, left))
        except (ImportError, OSError, RuntimeError):
            # No file descriptor for the import, or no thread. The refused call stays in the queue of these threads, so
            # the next flush starts others.
            self._threads = None
        return begun


def _call(left: deque[Callable[[], None]]) -> None:
    while left:
        try:
            sync = left.popleft()
        except IndexError:
            return  # another thread took the last one
        sync()
