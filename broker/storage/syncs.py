"""Syncs of several files at the same time: a disk serves them together, in little more time than one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


class Syncs:
    """The threads that sync. They start with the first flush of two files, and end with this object."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._threads: ThreadPoolExecutor | None = None

    def run(self, syncs: Sequence[Callable[[], None]]) -> None:
        """Call all of them and wait until all have ended. The first error is raised then."""
        count = min(len(syncs), self._at_once)
        if count < 2:
            _call(syncs)
            return
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(self._at_once - 1, thread_name_prefix="sync")
        begun = [self._threads.submit(_call, syncs[part::count]) for part in range(1, count)]
        try:
            _call(syncs[::count])
        finally:
            errors = [found for part in begun if (found := part.exception()) is not None]
        if errors:
            raise errors[0]


def _call(syncs: Sequence[Callable[[], None]]) -> None:
    for sync in syncs:
        sync()
