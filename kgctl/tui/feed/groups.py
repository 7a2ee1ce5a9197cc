"""The reads of groups: all of them, or one with its history."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakKeyDictionary

from broker.light_dataclasses import dataclass, field
from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.model.groups import CONSUMER, SHARE, GroupDescription
from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui.feed.derived_history import derived_events
from kgctl.tui.feed.read import Read
from kgctl.watch.clock_skew import latest_now_ms

# How many events of the past the first snapshot has.
NEWEST_EVENTS = 500
# How often brokers and topics are counted: the answer has all partitions of the cluster.
COUNT_EVERY_S = 60.0
_counted: WeakKeyDictionary[Admin, tuple[float, int, int]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class AllGroups(Read[Snapshot]):
    """All groups now. The app reads them in the background; screens take the view that it makes of them.

    With `recent_s`, also where the records of the last `recent_s` seconds begin in what groups with members have not read.
    """

    recent_s: float | None = field(default=None, compare=False)
    is_long: ClassVar[bool] = True

    def run(self, admin: Admin) -> Snapshot:
        listing = admin.list_groups()
        found: Sequence[GroupDescription] = admin.describe_groups(
            [row.group for row in listing.groups], commit_times=True
        )
        at_s, wall_ms = time.monotonic(), int(time.time() * 1000)
        if self.recent_s is not None:
            found = _with_recent(admin, found, self.recent_s, wall_ms)
        events = None
        with contextlib.suppress(KgctlError):
            events = admin.recent_events(NEWEST_EVENTS)
        brokers, topics = _extent(admin, at_s)
        return Snapshot(at_s, wall_ms, {group.group: group for group in found}, listing.errors, events, brokers, topics)


@dataclass(frozen=True, slots=True)
class OneGroup(Read[GroupSnapshot]):
    """One group now, with its whole history or only the events since the last read of this group. `recent_s`: as in AllGroups."""

    group: str
    whole_history: bool = field(default=False, compare=False)
    recent_s: float | None = field(default=None, compare=False)

    def run(self, admin: Admin) -> GroupSnapshot:
        found: Sequence[GroupDescription] = admin.describe_groups([self.group], commit_times=True)
        # Reading the history may take long; rates refer to the moment of the description.
        at_s, wall_ms = time.monotonic(), int(time.time() * 1000)
        if self.recent_s is not None:
            found = _with_recent(admin, found, self.recent_s, wall_ms)
        events, reason = None, None
        try:
            events = admin.new_events(self.group, whole_history=self.whole_history)
        except Precondition as error:
            reason = str(error)
            if found[0].type in (CONSUMER, SHARE):
                # Snapshots show more of classic groups: when a rebalance begins, and what is under way.
                with contextlib.suppress(KgctlError):
                    events, reason = derived_events(admin, self.group, whole_history=self.whole_history), None
        except KgctlError as error:
            reason = str(error)
        return GroupSnapshot(at_s, wall_ms, found[0], events, reason)


def _with_recent(
    admin: Admin, groups: Sequence[GroupDescription], recent_s: float, wall_ms: int
) -> Sequence[GroupDescription]:
    """The groups with where the records of the last `recent_s` seconds begin, if they have members."""
    if not any(group.members for group in groups):
        return groups
    now_ms = latest_now_ms(groups, wall_ms)
    found, _ = admin.with_recent(groups, now_ms - round(recent_s * 1000), now_ms)
    return found


def _extent(admin: Admin, now_s: float) -> tuple[int | None, int | None]:
    """How many brokers and topics, without internal ones, the cluster has; None if that is not known."""
    known = _counted.get(admin)
    if known is None or now_s - known[0] >= COUNT_EVERY_S:
        with contextlib.suppress(KgctlError):
            found = admin.run(admin.cluster.metadata(None))
            topics = sum(not topic.is_internal for topic in found.topics)
            known = _counted[admin] = (now_s, len(found.brokers), topics)
    return (None, None) if known is None else known[1:]
