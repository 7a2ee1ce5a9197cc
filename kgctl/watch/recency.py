"""Proves from offsets alone that a group has left no old record unread, or that it has."""

from __future__ import annotations

from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.watch.rows import is_left, key_of
from kgctl.watch.tracker import GroupTracker


def unread_for_at_most_s(tracker: GroupTracker, age_s: float) -> float | None:
    """An age beyond which the group has read every record of all its partitions: `age_s`, or more if it was asked a while ago.

    None if that is not proven. `recent_from` has where records younger than `age_s` began; a partition of which it says nothing
    proves nothing.
    """
    group = tracker.group
    asked_s = tracker.at_s - tracker.recent_at_s
    if group is None or not tracker.recent_from or asked_s > tracker.limits.growth_span_s:
        return None
    rows = (row for row in group.partitions if not is_left(group, row))
    return age_s + asked_s if all(_is_read(tracker, group, row, age_s + asked_s) for row in rows) else None


def has_waited_at_most_s(tracker: GroupTracker, row: PartitionLag) -> float | None:
    """As `unread_for_at_most_s`, of one partition and the time that was asked."""
    group, asked_s = tracker.group, tracker.at_s - tracker.recent_at_s
    age_s = tracker.limits.behind_s + asked_s
    if group is None or asked_s > tracker.limits.growth_span_s:
        return None
    return age_s if _is_read(tracker, group, row, age_s) else None


def leaves_old_records(tracker: GroupTracker, row: PartitionLag) -> bool:
    """Whether records older than those of `recent_from` are unread in this partition.

    Consumers may leave the last position of a topic unread that holds no record, only the end of a transaction.
    """
    start, end = tracker.recent_from.get(key_of(row)), row.log_end_offset
    if start is None or row.current_offset is None or end is None:
        return False
    return start <= end and start - row.current_offset > 1


def _is_read(tracker: GroupTracker, group: GroupDescription, row: PartitionLag, age_s: float) -> bool:
    if row.error is None and (not row.log_end_offset or (row.lag is not None and row.lag <= 0)):
        return True
    key = key_of(row)
    offset = group.unread_from.get(key) if row.current_offset is None else row.current_offset
    start = tracker.recent_from.get(key, tracker.recent_read.get(key))
    if offset is None or start is None or offset < start:
        return False
    # Records of the last moments cannot have been read before: then the clock of a producer is ahead.
    commit_ms = group.committed_at.get(key)
    return offset == start or commit_ms is None or tracker.age_s(commit_ms) < age_s
