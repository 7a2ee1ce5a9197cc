"""Where the dashboard's rows come from: one seam, a cluster or what a test has prepared."""

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
from kgctl.model.watched import GroupLook, Look

T = TypeVar("T")


class Feed(Protocol):
    """Its coroutines raise a KgctlError where nothing can be said; none of them blocks the event loop."""

    @property
    def name(self) -> str:
        """The cluster as a person calls it: its addresses."""
        ...

    async def look(self, read: Callable[[Look], T]) -> T:
        """All groups now, as `read` makes something of them: one look after the other, and not in the event loop."""
        ...

    async def look_at(self, group: str, *, anew: bool) -> GroupLook:
        """One group now. `anew` gives all of its story, else only what came since the last call for this group."""
        ...

    async def ask(self, question: Callable[[Admin], T]) -> T:
        """Anything else, plans and changes, not behind a look that takes long."""
        ...

    def close(self) -> None: ...


class ClusterFeed:
    """A cluster. Looks and questions have a thread and connections of their own, so that neither waits for the other.

    The client blocks; in a thread it leaves the event loop to keys and redraws, also while it decodes 10,000 groups.
    The timeout of the settings bounds each look and each question.
    """

    def __init__(self, connection: ConnectionSettings) -> None:
        self._connection = connection
        self._looking = _Thread(connection, "looks")
        self._asking = _Thread(connection, "questions")

    @property
    def name(self) -> str:
        return ",".join(map(str, self._connection.bootstrap))

    async def look(self, read: Callable[[Look], T]) -> T:
        return await self._looking.ask(lambda admin: read(_look(admin)))

    async def look_at(self, group: str, *, anew: bool) -> GroupLook:
        return await self._looking.ask(lambda admin: look_at(admin, group, anew=anew))

    async def ask(self, question: Callable[[Admin], T]) -> T:
        return await self._asking.ask(question)

    def close(self) -> None:
        self._looking.close()
        self._asking.close()


def _look(admin: Admin) -> Look:
    listing = admin.list_groups()
    found = admin.describe_groups([row.group for row in listing.groups])
    return Look(
        time.monotonic(), int(time.time() * 1000), {group.group: group for group in found}, errors=listing.errors
    )


def look_at(admin: Admin, group: str, *, anew: bool) -> GroupLook:
    (found,) = admin.describe_groups([group])
    # The story may take long to read; rates are of the moment of the description.
    at_s, wall_ms = time.monotonic(), int(time.time() * 1000)
    events, why = None, None
    try:
        events = admin.new_events(group, anew=anew)
    except KgctlError as error:
        why = str(error)
    return GroupLook(at_s, wall_ms, found, events, why)


class _Thread:
    """A thread with an Admin, one question after another. It is a daemon: a node that hangs does not hold up the end."""

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
    except BaseException as error:  # noqa: BLE001 - raised again where the answer is awaited
        failed = error

    def settle() -> None:
        if answer.done():
            return
        if failed is None:
            answer.set_result(result)  # type: ignore[arg-type]
        else:
            answer.set_exception(failed)

    # The loop is closed where the dashboard has ended meanwhile.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(settle)
