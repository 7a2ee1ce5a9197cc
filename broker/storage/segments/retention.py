"""Retention of segment partitions: drop the oldest segments by age (retention.ms) and size (retention.bytes)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from broker.light_named_tuples import NamedTuple
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.shared import Shared
from broker.storage.store.catalog import Topic, Topics
from broker.storage.store.values import as_bytes, as_int

PARTITIONS_PER_QUERY = 200


class Overdue(NamedTuple):
    """A partition with segments that retention may drop."""

    topic: Topic
    partition: int


def overdue_partitions(
    shared: Shared, topics: Topics, loaded_ids: Callable[[], set[int]], wall_ms: int
) -> Iterator[Overdue | None]:
    """One item per partition, None if nothing is overdue. The store may lag behind a loaded partition: those all count."""
    after = 0
    while True:
        rows = shared.store.query(
            "SELECT p.partition_id, p.topic_id, p.partition, min(s.max_timestamp), sum(s.size_bytes)"
            " FROM partitions AS p JOIN segments AS s ON s.partition_id = p.partition_id WHERE p.partition_id > ?"
            " GROUP BY p.partition_id ORDER BY p.partition_id LIMIT ?",
            (after, PARTITIONS_PER_QUERY),
        )
        if not rows:
            return
        loaded = loaded_ids()
        for partition_id, topic_id, index, oldest_ms, size_bytes in rows:
            after = as_int(partition_id)
            topic = topics.by_id(as_bytes(topic_id))
            if topic is None:
                continue
            policy = shared.policy_of(topic)
            too_old = policy.retention_ms >= 0 and as_int(oldest_ms) < wall_ms - policy.retention_ms
            too_large = 0 <= policy.retention_bytes < as_int(size_bytes)
            is_overdue = policy.delete and (too_old or too_large or partition_id in loaded)
            yield Overdue(topic, as_int(index)) if is_overdue else None


def retain(partition: SegmentPartition, wall_ms: int) -> None:
    """Drop the oldest segments while they are past retention.ms or the rest alone fills retention.bytes.

    A segment that lost all its records counts as old as the next one.
    """
    policy = partition.policy
    surplus = partition.size_bytes - policy.retention_bytes if policy.retention_bytes >= 0 else -1
    count = 0
    for at, segment in enumerate(partition.segments):
        if not segment.size_bytes or segment.end_offset > partition.high_watermark:
            break
        newest_ms = next((s.max_timestamp for s in partition.segments[at:] if s.max_timestamp >= 0), -1)
        too_old = policy.retention_ms >= 0 and 0 <= newest_ms < wall_ms - policy.retention_ms
        too_large = surplus >= segment.size_bytes
        before_start = segment.end_offset <= partition.log_start_offset
        if not (too_old or too_large or before_start):
            break
        surplus -= segment.size_bytes
        count += 1
    if count:
        if count == len(partition.segments):
            partition.roll()
        partition.drop_segments(count, partition.segments[count].base_offset)
