"""All groups over successive snapshots: one row per group, ready to be shown."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.model.groups import GroupDescription
from kgctl.model.health import Health
from kgctl.model.watched import Snapshot, WatchedGroup
from kgctl.watch.clock_skew import newest_ms
from kgctl.watch.health import health
from kgctl.watch.limits import LIMITS, Limits
from kgctl.watch.rates import WINDOW_S
from kgctl.watch.tracker import GroupTracker, generation_of, is_gone
from kgctl.watch.waiting import waiting_s


class GroupsWatch:
    """Tracks every group over a window of WINDOW_S. Groups that have been absent for longer are forgotten."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._trackers: dict[str, GroupTracker] = {}

    def add(self, snapshot: Snapshot) -> list[WatchedGroup]:
        """Add a snapshot and return its rows by group id: without deleted groups, and with an error for those that failed."""
        return list(self.rows(snapshot))

    def tracker(self, name: str) -> GroupTracker:
        """The tracker of this group; it may get snapshots of this group alone, too."""
        found = self._trackers.get(name)
        if found is None:
            found = self._trackers[name] = GroupTracker(self._limits)
        return found

    def rows(self, snapshot: Snapshot) -> Iterator[WatchedGroup]:
        """As `add`, one row at a time: a caller with 10,000 groups can do other things in between."""
        count = 0
        cluster_ms = newest_ms(snapshot.groups.values())
        for name in sorted(snapshot.groups):
            group = snapshot.groups[name]
            if group.error is not None:
                if not is_gone(group.error):
                    count += 1
                    yield failed(group)
                continue
            tracker = self.tracker(name)
            tracker.add(snapshot.at_s, snapshot.wall_ms, group, cluster_ms)
            count += 1
            yield row_of(tracker, group)
        if len(self._trackers) > count:
            self._forget(snapshot)

    def _forget(self, snapshot: Snapshot) -> None:
        """Drop deleted groups. Groups of a broker that did not answer stay for a while."""
        trackers = self._trackers
        for name in [name for name in trackers if self._is_absent(trackers[name], snapshot.groups.get(name), snapshot)]:
            del trackers[name]

    def _is_absent(self, tracker: GroupTracker, group: GroupDescription | None, snapshot: Snapshot) -> bool:
        if group is None and not snapshot.errors:
            return True
        return (group is not None and is_gone(group.error)) or tracker.at_s < snapshot.at_s - WINDOW_S


def row_of(tracker: GroupTracker, group: GroupDescription) -> WatchedGroup:
    """The row of a group whose newest snapshot the tracker has."""
    judgement = health(tracker, group.unread_since)
    throughput = tracker.throughput
    return WatchedGroup(
        group=group.group,
        type=group.type,
        state=group.state,
        generation=generation_of(group),
        protocol=group.assignment_strategy or None,
        members=len(group.members),
        lag=None if tracker.lag is None else tracker.lag + tracker.left_over_lag,
        rate_in=throughput.rate_in,
        rate_out=throughput.rate_out,
        rebalanced_s=tracker.rebalanced_s,
        health=judgement.health,
        health_reason=judgement.reason,
        evidence=judgement.evidence,
        uncommitted_records=judgement.uncommitted_records,
        health_brief=judgement.brief,
        behind_s=waiting_s(tracker, group.unread_since),
    )


def failed(group: GroupDescription) -> WatchedGroup:
    """The row of a group that could not be described: its error, and the values from the listing."""
    return WatchedGroup(
        group=group.group,
        type=group.type,
        state=group.state,
        generation=None,
        protocol=None,
        members=None,
        lag=None,
        rate_in=None,
        rate_out=None,
        rebalanced_s=None,
        health=Health.UNKNOWN,
        health_reason=group.error.message if group.error else "",
        error=group.error,
        health_brief=group.error.name if group.error else "",
    )
