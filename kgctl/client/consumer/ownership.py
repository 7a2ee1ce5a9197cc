"""A consumer is for one thread or task at a time. This finds out who uses it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kgctl.client.consumer.errors import ConcurrentUse


class Ownership:
    """`user` identifies and names who calls. The owner may call again, from a listener or a callback."""

    def __init__(self, user: Callable[[], tuple[object, str]]) -> None:
        self._user = user
        self._lock = threading.Lock()
        self._owner: object = None
        self._name = ""
        self._depth = 0

    def __enter__(self) -> None:
        me, name = self._user()
        if self._owner != me or not self._depth:
            if not self._lock.acquire(blocking=False):
                raise ConcurrentUse(
                    f"{name} cannot use the consumer, because {self._name} uses it at the moment;"
                    " a consumer is for one at a time, and only wakeup() may be called by others"
                )
            self._owner, self._name = me, name
        self._depth += 1

    def __exit__(self, *exc: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None
            self._lock.release()


def current_thread() -> tuple[object, str]:
    return threading.get_ident(), f"thread {threading.current_thread().name!r}"


def current_task() -> tuple[object, str]:
    import asyncio

    task = asyncio.current_task()
    return task, "code outside of tasks" if task is None else f"task {task.get_name()!r}"
