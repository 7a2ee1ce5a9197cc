"""Watches all groups while the app runs, whatever screen is open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import TypeVar

from kgctl.client.net.errors import KgctlError
from kgctl.tui.feed.groups import AllGroups
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.polling import Polling
from kgctl.watch.cluster import ClusterView, ClusterWatch

T = TypeVar("T")


class Background:
    """Polls all groups from the start to the end of the app. `answered` and `failed` are called after each attempt."""

    def __init__(
        self,
        feed: Feed,
        answered: Callable[[ClusterView], None],
        failed: Callable[[KgctlError], None],
        interval_s: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self.polling = Polling(self._ask, answered, failed, interval_s, clock)
        self._feed = feed
        self._watch = ClusterWatch()

    @property
    def view(self) -> ClusterView | None:
        """The newest view; None until a snapshot succeeds."""
        return self.polling.last

    async def _ask(self) -> ClusterView:
        return await in_slices(self._watch.adding(await self._feed.read(AllGroups())))


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Run a computation, and let keys and redraws in between."""
    while True:
        try:
            next(steps)
        except StopIteration as over:
            found: T = over.value
            return found
        await asyncio.sleep(0)
