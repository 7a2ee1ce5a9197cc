"""The rows of a group's partitions: which count, and their keys."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.model.topic_partition import TopicPartition


def lagging(group: GroupDescription) -> Iterator[PartitionLag]:
    """The partitions with unread records that count: not those of topics that no member subscribes to any more."""
    for row in group.partitions:
        if row.lag is not None and row.lag > 0 and not is_left(group, row):
            yield row


def is_left(group: GroupDescription, row: PartitionLag) -> bool:
    """Whether this partition is of a topic that no member subscribes to any more."""
    wanted = group.subscribed if group.members else None
    return wanted is not None and row.consumer_id is None and row.topic not in wanted


def key_of(row: PartitionLag) -> TopicPartition:
    return TopicPartition(row.topic or "", row.partition or 0)
