"""Where the records of the last moments begin in the partitions that groups have not read to the end."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from broker.light_dataclasses import replace
from kgctl.client.admin.offsets import OffsetAt, list_offsets
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.steps import Steps
from kgctl.model.groups import GroupDescription
from kgctl.model.topic_partition import TopicPartition

# A broker looks each of them up in an index, and may have to read a batch.
MOST_PARTITIONS = 5000
# A record from later than this after now has a wrong time.
_AHEAD_MS = 1000


def with_recent(
    cluster: Cluster, groups: Sequence[GroupDescription], since_ms: int, now_ms: int
) -> Steps[tuple[list[GroupDescription], int]]:
    """The groups with members and unread records, with `recent_from`; and of how many partitions this is left out."""
    wanted = sorted({key for group in groups for key in _unread(group)})
    asked = wanted[:MOST_PARTITIONS]
    found = yield from list_offsets(cluster, dict.fromkeys(asked, since_ms))
    starts = {
        key: at.offset
        for key, at in found.items()
        if isinstance(at, OffsetAt) and at.offset >= 0 and at.timestamp <= now_ms + _AHEAD_MS
    }
    quiet = {key for key, at in found.items() if isinstance(at, OffsetAt) and at.offset < 0}
    return [_with(group, starts, quiet) for group in groups], len(wanted) - len(asked)


def _with(
    group: GroupDescription, starts: dict[TopicPartition, int], quiet: Container[TopicPartition]
) -> GroupDescription:
    """`quiet` are partitions without records of the last moments: all of their records are older."""
    ends = {TopicPartition(row.topic or "", row.partition or 0): row.log_end_offset for row in group.partitions}
    own = {}
    for key in _unread(group):
        start = ends.get(key) if key in quiet else starts.get(key)
        if start is not None:
            own[key] = start
    return replace(group, recent_from=own) if own else group


def _unread(group: GroupDescription) -> Iterator[TopicPartition]:
    if group.error is None and group.members:
        yield from group.unread_from
        for row in group.partitions:
            if row.lag is not None and row.lag > 0 and row.topic is not None and row.partition is not None:
                yield TopicPartition(row.topic, row.partition)
