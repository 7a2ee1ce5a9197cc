"""What the answers of a cluster show together: the view of all groups, and the groups that were opened."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Generator
from typing import Protocol, TypeVar

from kgctl.model.watched import GroupSnapshot
from kgctl.tui.feed.groups import AllGroups, OneGroup
from kgctl.tui.feed.protocol import Feed
from kgctl.watch.cluster import ClusterView, ClusterWatch
from kgctl.watch.limits import LIMITS, Limits
from kgctl.watch.opened import OpenedGroup

T = TypeVar("T")
# How often the cluster is asked where recent records begin. It proves, without waiting, that groups keep up or are stuck.
RECENT_EVERY_S = 20.0


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
        self._feed, self._limits = feed, limits
        self._recent_at_s: float | None = None
        self._recent_of: dict[str, float] = {}  # when this was asked for a group alone
        self._watch = ClusterWatch(limits)
        self._opened: dict[str, OpenedGroup] = {}
        self._adding = asyncio.Lock()

    async def cluster(self) -> ClusterView:
        now_s = time.monotonic()
        is_due = self._recent_at_s is None or now_s - self._recent_at_s >= RECENT_EVERY_S
        snapshot = await self._feed.read(AllGroups(self._limits.behind_s if is_due else None))
        if is_due:
            self._recent_at_s = now_s
        async with self._adding:
            view = await in_slices(self._watch.adding(snapshot))
            for name, opened in self._opened.items():
                opened.add_from(snapshot, name)
        return view

    async def group(self, name: str, *, whole_history: bool) -> OpenedGroup:
        known = self._opened.get(name)
        whole = whole_history or known is None or known.lacks_events
        # The first snapshot of all groups may take longer than several of this one.
        recent_s = self._limits.behind_s if self._is_recent_due(name) else None
        snapshot: GroupSnapshot = await self._feed.read(OneGroup(name, whole, recent_s))
        if recent_s is not None:
            self._recent_of[name] = snapshot.at_s
        async with self._adding:
            if known is None:
                known = self._opened[name] = OpenedGroup(self._watch.tracker(name))
            known.add(snapshot, whole_history=whole)
        return known

    def _is_recent_due(self, name: str) -> bool:
        opened = self._opened.get(name)
        if opened is None or opened.snapshot is None:
            return True
        tracker = self._watch.tracker(name)
        asked_s = max(tracker.recent_at_s, self._recent_of.get(name, -math.inf))
        return opened.snapshot.at_s - asked_s >= RECENT_EVERY_S


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Run a computation, and let keys and redraws in between."""
    while True:
        try:
            next(steps)
        except StopIteration as over:
            found: T = over.value
            return found
        await asyncio.sleep(0)
