"""Judges a group from one snapshot, with the times of its commits and of its unread records where they are known.

One snapshot cannot show whether a lag grows. It proves an error, a rebalance, a silent member, and that a group has no lag; with
times also that records have waited for a moment only, or for too long. Without a proof there is no verdict.
"""

from __future__ import annotations

from broker.light_dataclasses import replace
from kgctl.model.groups import GroupDescription
from kgctl.model.health import Judgement
from kgctl.watch.health import NO_TIMES, Times, judge
from kgctl.watch.limits import LIMITS, Limits
from kgctl.watch.tracker import GroupTracker


def standing(
    group: GroupDescription,
    wall_ms: int,
    committed_at: Times | None = None,
    unread_since: Times = NO_TIMES,
    *,
    cluster_ms: int | None = None,
    unused_after_s: float = LIMITS.unused_s,
) -> Judgement:
    """The judgement about a group as it is at `wall_ms`, ms since 1970 by our clock.

    `committed_at` has the time of the newest commit of each partition, by the coordinator's clock (default: those of the
    group); `unread_since` the timestamp of the oldest unread record of partitions with lag. A quiet topic is not stalled:
    a commit may be old if no record has waited since. `cluster_ms` is the latest time that brokers are known to have
    reported: where the coordinator does not report its clock, only what it proves makes anything old.
    """
    tracker = GroupTracker(Limits(unused_s=unused_after_s))
    if committed_at is not None and committed_at is not group.committed_at:
        group = replace(group, committed_at=committed_at)
    if group.error is None:
        tracker.add(0.0, wall_ms, group, cluster_ms)
    else:
        tracker.group = group
    return judge(tracker, unread_since)._replace(evidence=None)
