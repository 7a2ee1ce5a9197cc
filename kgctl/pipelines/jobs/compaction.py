"""compaction: reads the logs of compacted topics and measures what compaction has left and would free."""

from __future__ import annotations

import time

from pyspark import StorageLevel

from kgctl.client.admin.admin import Admin
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, list_offsets
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.log_scan import scan
from kgctl.pipelines.jobs.lookups import CLIENT_ID
from kgctl.pipelines.jobs.topic_facts import TopicFacts, topics_of
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.topics import COMPACTION, COMPACTION_KEYS
from kgctl.pipelines.source.ranges import OffsetRange
from kgctl.pipelines.transforms import compaction


def run(run: RunContext, job: Job) -> int:
    """Rows written to f_compaction: one per partition of the compacted topics."""
    connection = run.settings.connection(CLIENT_ID)
    with Admin(connection) as admin:
        topics = topics_of(run, admin, job.name, lambda topic: topic.is_compacted)
        ranges = _ranges(admin, [one for topic in topics for one in topic.partitions])
    if not ranges:
        run.emit(Progress("note", "no topic that was chosen is compacted", job=job.name))
        return 0
    now_ms = time.time_ns() // 1_000_000
    facts = run.spark.createDataFrame(_facts(topics, ranges), compaction.FACTS_DDL)
    keys = compaction.by_key(scan(run.spark, connection, [one for one in ranges.values() if one.size]))
    # The logs are read once; keys that do not fit into memory go to disk.
    keys = keys.persist(StorageLevel.MEMORY_AND_DISK)
    batch = f"{job.name}-{now_ms}"
    try:
        run.write(COMPACTION_KEYS, compaction.worst_keys(keys, now_ms), batch)
        return run.write(COMPACTION, compaction.compaction(keys, facts, now_ms), batch).rows
    finally:
        keys.unpersist()


def _ranges(admin: Admin, partitions: list[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
    """From the log start to the last stable offset, beyond which compaction does not see; without partitions that fail."""
    stable = admin.run(list_offsets(admin.cluster, dict.fromkeys(partitions, LATEST), committed_only=True))
    starts = admin.run(list_offsets(admin.cluster, dict.fromkeys(partitions, EARLIEST)))
    found = {}
    for one in partitions:
        start, end = starts[one], stable[one]
        if isinstance(start, OffsetAt) and isinstance(end, OffsetAt):
            found[one] = OffsetRange(one, start.offset, max(start.offset, end.offset))
    return found


def _facts(topics: list[TopicFacts], ranges: dict[TopicPartition, OffsetRange]) -> list[tuple[object, ...]]:
    return [
        (
            *one,
            ranges[one].start,
            ranges[one].end,
            topic.delete_retention_ms,
            topic.dirty_ratio_limit,
            topic.segment_bytes,
        )
        for topic in topics
        for one in topic.partitions
        if one in ranges
    ]
