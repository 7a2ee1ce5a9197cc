"""The feed of a running cluster."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from kgctl.client.admin.admin import Admin
from kgctl.client.net.connector import ConnectionSettings
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.read import Read

T = TypeVar("T")


class ClusterFeed:
    """A cluster. Reads of screens, long reads and questions each have a thread with its own connections: none delays another.

    The blocking client runs in these threads; the event loop stays free for keys and redraws, also while a thread decodes
    10,000 groups. The timeout of the settings applies to each read and each question.
    """

    def __init__(self, connection: ConnectionSettings, cluster: ClusterLabel | None = None) -> None:
        self.cluster = cluster or ClusterLabel(",".join(map(str, connection.bootstrap)))
        self._connection = connection
        self._threads: dict[str, _Thread] = {}

    async def read(self, read: Read[T]) -> T:
        return await self._thread(read.lane).ask(read.run)

    async def ask(self, question: Callable[[Admin], T]) -> T:
        return await self._thread("questions").ask(question)

    def close(self) -> None:
        for thread in self._threads.values():
            thread.close()

    def _thread(self, name: str) -> _Thread:
        found = self._threads.get(name)
        if found is None:
            found = self._threads[name] = _Thread(self._connection, name)
        return found


class _Thread:
    """A thread with an Admin that answers one question after another. A daemon: a node that hangs does not delay the exit."""

    def __init__(self, connection: ConnectionSettings, name: str) -> None:
        self._questions: queue.SimpleQueue[tuple[Callable[[Admin], Any], asyncio.Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._admin = Admin(connection)
        self._thread = threading.Thread(target=self._run, name=f"kgctl ui {name}", daemon=True)
        self._thread.start()

    async def ask(self, question: Callable[[Admin], T]) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._questions.put((question, answer))
        return await answer

    def close(self) -> None:
        self._questions.put(None)

    def _run(self) -> None:
        with self._admin as admin:
            while (asked := self._questions.get()) is not None:
                question, answer = asked
                if not answer.cancelled():
                    _settle(answer, question, admin)


def _settle(answer: asyncio.Future[T], question: Callable[[Admin], T], admin: Admin) -> None:
    loop = answer.get_loop()
    result: T | None = None
    failed: BaseException | None = None
    try:
        result = question(admin)
    except BaseException as error:  # noqa: BLE001 - raised again in the coroutine that awaits the answer
        failed = error

    def settle() -> None:
        if answer.done():
            return
        if failed is None:
            answer.set_result(result)  # type: ignore[arg-type]
        else:
            answer.set_exception(failed)

    # The loop is closed if the dashboard has ended meanwhile.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(settle)
