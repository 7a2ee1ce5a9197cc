"""The source of everything the dashboard shows: a cluster, or what a test has prepared."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from kgctl.client.admin.admin import Admin
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError
from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui.cluster_label import ClusterLabel

T = TypeVar("T")


class Feed(Protocol):
    """Coroutines that do not block the event loop, return values to it, and raise a KgctlError on failure."""

    @property
    def cluster(self) -> ClusterLabel:
        """What people call the cluster, and what its context forbids."""
        ...

    async def snapshot(self) -> Snapshot:
        """All groups now."""
        ...

    async def group_snapshot(self, group: str, *, whole_history: bool) -> GroupSnapshot:
        """One group now, with its whole history or only the events since the last call for this group."""
        ...

    async def ask(self, question: Callable[[Admin], T]) -> T:
        """Anything else, such as plans and changes. It does not wait for a snapshot that takes long.

        The question runs in another thread: it may use the Admin and its own values, and must not touch a screen.
        """
        ...

    def close(self) -> None: ...


class ClusterFeed:
    """A cluster. Snapshots and questions each have a thread with its own connections, so that neither delays the other.

    The blocking client runs in these threads; the event loop stays free for keys and redraws, also while a thread decodes
    10,000 groups. The timeout of the settings applies to each snapshot and each question.
    """

    def __init__(self, connection: ConnectionSettings, cluster: ClusterLabel | None = None) -> None:
        self.cluster = cluster or ClusterLabel(",".join(map(str, connection.bootstrap)))
        self._snapshots = _Thread(connection, "snapshots")
        self._questions = _Thread(connection, "questions")

    async def snapshot(self) -> Snapshot:
        return await self._snapshots.ask(_snapshot)

    async def group_snapshot(self, group: str, *, whole_history: bool) -> GroupSnapshot:
        return await self._snapshots.ask(lambda admin: group_snapshot(admin, group, whole_history=whole_history))

    async def ask(self, question: Callable[[Admin], T]) -> T:
        return await self._questions.ask(question)

    def close(self) -> None:
        self._snapshots.close()
        self._questions.close()


def _snapshot(admin: Admin) -> Snapshot:
    listing = admin.list_groups()
    found = admin.describe_groups([row.group for row in listing.groups])
    return Snapshot(
        time.monotonic(), int(time.time() * 1000), {group.group: group for group in found}, errors=listing.errors
    )


def group_snapshot(admin: Admin, group: str, *, whole_history: bool) -> GroupSnapshot:
    (found,) = admin.describe_groups([group])
    # Reading the history may take long; rates refer to the moment of the description.
    at_s, wall_ms = time.monotonic(), int(time.time() * 1000)
    events, reason = None, None
    try:
        events = admin.new_events(group, whole_history=whole_history)
    except KgctlError as error:
        reason = str(error)
    return GroupSnapshot(at_s, wall_ms, found, events, reason)


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
