"""For how long the oldest unread record of a group has waited."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.model.groups import PartitionLag
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.recency import has_waited_at_most_s, leaves_old_records
from kgctl.watch.rows import key_of, lagging
from kgctl.watch.tracker import GroupTracker


def waiting_s(tracker: GroupTracker, unread_since: Mapping[TopicPartition, int]) -> float | None:
    """For how long the oldest unread record of the group has waited: the longest time of its partitions.

    0 without lag; None if one partition may have waited for longer than what is known. A partition without new commits has waited since its last one.
    """
    group = tracker.group
    if group is None or tracker.lag is None:
        return None
    longest_s = most_s = 0.0
    for row in lagging(group):
        found = _waited_s(tracker, row, unread_since.get(key_of(row)))
        if found is not None:
            longest_s = max(longest_s, found)
        elif (found := has_waited_at_most_s(tracker, row)) is not None:
            most_s = max(most_s, found)
        else:
            return None
    return longest_s if longest_s >= most_s else None


def _waited_s(tracker: GroupTracker, row: PartitionLag, unread_ms: int | None) -> float | None:
    if unread_ms is not None:
        return tracker.apparent_age_s(unread_ms)
    key, limit_s = key_of(row), tracker.limits.stalled_s
    by_arrivals = tracker.arrivals.waited_s(row, tracker.at_s)
    group = tracker.group
    commit_ms = None if group is None else group.committed_at.get(key)
    since_s = tracker.stalled_since.get(key)
    still_s = 0.0 if since_s is None else tracker.at_s - since_s
    quiet_s = max(still_s, 0.0 if commit_ms is None else tracker.age_s(commit_ms))
    if still_s < limit_s and not (quiet_s >= limit_s and leaves_old_records(tracker, row)):
        return by_arrivals
    return max(quiet_s, by_arrivals or 0.0)
