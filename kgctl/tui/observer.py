"""What the answers of a cluster show together: the view of all groups, and the groups that were opened."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Protocol, TypeVar

from kgctl.model.watched import GroupSnapshot
from kgctl.tui.feed.groups import AllGroups, OneGroup
from kgctl.tui.feed.protocol import Feed
from kgctl.watch.cluster import ClusterView, ClusterWatch
from kgctl.watch.limits import LIMITS, Limits
from kgctl.watch.opened import OpenedGroup

T = TypeVar("T")


class Observer(Protocol):
    """Its coroutines raise a KgctlError if the cluster does not answer."""

    async def cluster(self) -> ClusterView:
        """All groups now."""
        ...

    async def group(self, name: str, *, whole_history: bool) -> OpenedGroup:
        """One group now; with its whole history if other events may have been read since the last call."""
        ...


class LiveObserver:
    """Reads a feed, and adds each answer to what the answers before it show, in the order in which they arrive."""

    def __init__(self, feed: Feed, limits: Limits = LIMITS) -> None:
        self._feed = feed
        self._watch = ClusterWatch(limits)
        self._opened: dict[str, OpenedGroup] = {}
        self._adding = asyncio.Lock()

    async def cluster(self) -> ClusterView:
        snapshot = await self._feed.read(AllGroups())
        async with self._adding:
            view = await in_slices(self._watch.adding(snapshot))
            for name, opened in self._opened.items():
                opened.add_from(snapshot, name)
        return view

    async def group(self, name: str, *, whole_history: bool) -> OpenedGroup:
        known = self._opened.get(name)
        whole = whole_history or known is None or known.lacks_events
        snapshot: GroupSnapshot = await self._feed.read(OneGroup(name, whole))
        async with self._adding:
            if known is None:
                known = self._opened[name] = OpenedGroup(self._watch.tracker(name))
            known.add(snapshot, whole_history=whole)
        return known


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Run a computation, and let keys and redraws in between."""
    while True:
        try:
            next(steps)
        except StopIteration as over:
            found: T = over.value
            return found
        await asyncio.sleep(0)
