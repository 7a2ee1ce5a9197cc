"""Builds a new data directory from a plan, with the code that a broker writes with."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from broker.storage.errors import StorageError
from broker.storage.file_ops import FileOps
from broker.storage.log import Log
from broker.storage.rescue.batches import Batch
from broker.storage.rescue.partitions import Gap, PartitionPlan, SegmentStart, cover
from broker.storage.rescue.plan import RescuePlan, TopicPlan
from broker.storage.rescue.reading import Progress
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.split_transactions import commit_alike
from broker.storage.settings import LogSettings

DRAFT_NAME = ".rescue-draft"
FLUSH_BYTES = 32 << 20
# A larger gap, in front of a file with an odd name, stays without empty batches, as between compacted segments.
MOST_COVERED = 1 << 40
# The store moves last: a start refuses segments without it.
_MOVED_LAST = "store.db"


def build(plan: RescuePlan, into: Path, progress: Progress) -> None:
    """Fill the directory `into`, which exists and is held. It is no data directory before everything is in it.

    StorageError: something cannot be written. The next attempt starts again.
    """
    draft = into / DRAFT_NAME
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(mode=0o700)
    log = _open(draft)
    try:
        log.adopt(plan.cluster_id, plan.next_producer_id)
        log.alter_broker_configs(plan.broker_configs)
        for record in plan.security_records:
            log.security_records.put(*record)
        written = [partition for topic in plan.topics for partition in _write_topic(log, topic, progress)]
        ended = Counter(partition.name for partition in commit_alike(written))
        log.close()
    finally:
        log.close(clean=False)
    _check(plan, draft, ended)
    _move_up(draft, into)


def _open(directory: Path) -> Log:
    return Log.open(directory, LogSettings(), wall_ms=time.time_ns() // 1_000_000)


def _write_topic(log: Log, plan: TopicPlan, progress: Progress) -> list[SegmentPartition]:
    topic = plan.topic
    written = []
    log.create_topic(topic.name, topic.partition_count, topic.configs, topic_id=topic.topic_id)
    for found in plan.partitions:
        if found.log_end_offset == 0 and not found.files:
            continue
        partition = log.partition(topic.name, found.index)
        assert isinstance(partition, SegmentPartition)
        _write_partition(log, partition, found, progress)
        written.append(partition)
    log.flush()
    return written


def _write_partition(log: Log, partition: SegmentPartition, plan: PartitionPlan, progress: Progress) -> None:
    unflushed = 0
    for batch in _batches(partition, plan):
        partition.restore(batch.content, batch.header)
        progress.add(len(batch.content))
        unflushed += len(batch.content)
        if unflushed >= FLUSH_BYTES:
            log.flush()
            unflushed = 0
    log.flush()
    if plan.log_start_offset > partition.log_start_offset:
        partition.drop_segments(0, plan.log_start_offset)


def _batches(partition: SegmentPartition, plan: PartitionPlan) -> Iterator[Batch]:
    """Start segments where the old ones start, and yield all batches."""
    for part in plan.parts():
        if isinstance(part, SegmentStart):
            partition.start_segment(part.base_offset)
        elif isinstance(part, Gap):
            partition.transactions.forget_sequences()
            if part.until - partition.log_end_offset <= MOST_COVERED:
                yield from cover(partition.log_end_offset, part.until)
        else:
            yield part


def _check(plan: RescuePlan, draft: Path, ended: Mapping[str, int]) -> None:
    """Open the result as a broker would, and compare the ends of all partitions with the plan.

    `ended`: how many markers were added, by partition.
    """
    log = _open(draft)
    try:
        if log.losses:
            raise StorageError(f"the new directory is damaged: {log.losses[0]}")
        for topic in plan.topics:
            for found in topic.partitions:
                partition = log.partition(topic.topic.name, found.index)
                assert partition is not None
                end_offset = found.log_end_offset + ended.get(f"{topic.topic.name}-{found.index}", 0)
                if (partition.log_start_offset, partition.log_end_offset) != (found.log_start_offset, end_offset):
                    raise StorageError(
                        f"{topic.topic.name}-{found.index} was written with the offsets {partition.log_start_offset} to"
                        f" {partition.log_end_offset}, not {found.log_start_offset} to {end_offset}"
                    )
        log.close()
    finally:
        log.close(clean=False)


def _move_up(draft: Path, into: Path) -> None:
    names = sorted(os.listdir(draft), key=lambda name: name == _MOVED_LAST)
    ops = FileOps()
    ops.sync_directory(str(draft))
    for name in names:
        if name == _MOVED_LAST:
            ops.sync_directory(str(into))
        os.rename(draft / name, into / name)
    draft.rmdir()
    ops.sync_directory(str(into))
    ops.sync_directory(str(into.parent))
