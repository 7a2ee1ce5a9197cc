"""Proves from offsets alone that a group has left no old record unread, or that it has."""

from __future__ import annotations

from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.watch.rows import is_left, key_of
from kgctl.watch.tracker import GroupTracker


def reads_recent(tracker: GroupTracker, age_s: float) -> bool:
    """Whether the group has read, in all its partitions, every record that is older than `age_s`.

    `recent_from` of the group has where the younger ones begin. A partition of which it says nothing proves nothing.
    """
    group = tracker.group
    if group is None or not group.recent_from:
        return False
    return all(_is_read(tracker, group, row, age_s) for row in group.partitions if not is_left(group, row))


def leaves_old_records(group: GroupDescription, row: PartitionLag) -> bool:
    """Whether records older than those of `recent_from` are unread in this partition.

    Consumers may leave the last position of a topic unread that holds no record, only the end of a transaction.
    """
    start = group.recent_from.get(key_of(row))
    return start is not None and row.current_offset is not None and start - row.current_offset > 1


def _is_read(tracker: GroupTracker, group: GroupDescription, row: PartitionLag, age_s: float) -> bool:
    if row.error is None and (not row.log_end_offset or (row.lag is not None and row.lag <= 0)):
        return True
    key = key_of(row)
    offset = group.unread_from.get(key) if row.current_offset is None else row.current_offset
    start = group.recent_from.get(key)
    if offset is None or start is None or offset < start:
        return False
    # Records of the last moments cannot have been read before: then the clock of a producer is ahead.
    commit_ms = group.committed_at.get(key)
    return offset == start or commit_ms is None or tracker.age_s(commit_ms) < age_s
