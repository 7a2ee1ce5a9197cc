"""Where groups without a committed offset would begin: the first record of each partition, and its time."""

from __future__ import annotations

from broker.light_dataclasses import replace
from kgctl.client.admin.offsets import OffsetAt, list_offsets
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.steps import Steps
from kgctl.model.groups import GroupDescription
from kgctl.model.topic_partition import TopicPartition


def add_first_records(cluster: Cluster, described: dict[str, GroupDescription]) -> Steps[dict[str, GroupDescription]]:
    """The groups with partitions that a member owns and that have records and no committed offset, with their first records."""
    wanted = {name: keys for name, group in described.items() if (keys := _uncommitted(group))}
    if not wanted:
        return {}
    # The first record with a timestamp: unlike the start of the log, it has one.
    asked = dict.fromkeys((key for keys in wanted.values() for key in keys), 0)
    found = yield from list_offsets(cluster, asked)
    result = {}
    for name, ends in wanted.items():
        first = {key: at for key in ends if isinstance(at := found[key], OffsetAt)}
        result[name] = replace(
            described[name],
            unread_from={key: at.offset if at.offset >= 0 else ends[key] for key, at in first.items()},
            unread_since={key: at.timestamp for key, at in first.items() if at.timestamp >= 0},
        )
    return result


def _uncommitted(group: GroupDescription) -> dict[TopicPartition, int]:
    """The log ends of partitions with records that a member owns without a committed offset."""
    return {
        TopicPartition(row.topic or "", row.partition or 0): row.log_end_offset
        for row in group.partitions
        if row.current_offset is None and row.log_end_offset and row.consumer_id is not None and row.error is None
    }
