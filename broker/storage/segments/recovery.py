"""Recovery at the start: compare segment files with what the store lists, and read the tails that it does not list.

Whole valid batches beyond the checkpoint of a partition are kept, as they may have been acknowledged; they are synced
and listed. What follows them is a torn write and is cut, unless the synced end proves that it was acknowledged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from broker.storage.errors import DamageError
from broker.storage.segments.leftovers import DAMAGED_SUFFIX, damaged_files, note_damaged_file
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.partition_table import mark_beyond_checkpoint
from broker.storage.segments.repair import refuse, repair_partition, repair_segment, short_segments
from broker.storage.segments.shared import Shared
from broker.storage.store.catalog import Topic, Topics
from broker.storage.store.values import as_bytes, as_int


def recover(shared: Shared, topics: Topics, open_partition: Callable[[Topic, int], SegmentPartition]) -> list[str]:
    """Check all partitions; describe those that were being written to when the last run ended.

    DamageError: a segment file is missing or truncated, or acknowledged records are damaged, and losses are not accepted.
    """

    def stored(condition: str) -> Iterator[SegmentPartition]:
        sql = f"SELECT topic_id, partition FROM partitions WHERE {condition} ORDER BY partition_id"
        for topic_id, index in shared.store.query(sql):
            topic = topics.by_id(as_bytes(topic_id))
            if topic is not None:
                yield open_partition(topic, as_int(index))

    short = short_segments(shared, topics)
    if short and shared.store.evidence.binding and not shared.accept_loss:
        raise refuse(short)
    if shared.accept_loss:
        for partition in stored("1"):
            repair_partition(partition, shared)
    else:
        for topic, index in {(entry.topic.name, entry.partition): entry for entry in short}:
            repair_partition(open_partition(topics[topic], index), shared)
    recovered = []
    for partition in stored("unrecorded"):
        _recover_partition(partition, shared)
        recovered.append(f"{partition.name} up to offset {partition.log_end_offset}")
    return recovered


def _recover_partition(partition: SegmentPartition, shared: Shared) -> None:
    """Find the end of one partition that was being written to, and write its checkpoint to the store's transaction."""
    if not partition.segments:
        # Its first append was never flushed.
        mark_beyond_checkpoint(shared.store, partition.partition_id, False)
        return
    producers = partition.producers
    for header in partition.active.scan_tail():
        if header.producer_id >= 0:
            producers.note(header)
    _check_synced_end(partition, shared)
    active = partition.active
    is_cut = active.cut_remains()
    if is_cut or not _is_synced(partition, shared):
        shared.files.sync(active.file())
    _remove_unlisted(partition, shared)
    partition.checkpoint(complete=True)
    partition.advance()


def _is_synced(partition: SegmentPartition, shared: Shared) -> bool:
    """The last run synced everything up to the end of the active segment, and the synced end proves it."""
    end = shared.ends.read(partition.partition_id)
    return shared.store.evidence.was_synced and end is not None and end.end_offset == partition.active.end_offset


def _check_synced_end(partition: SegmentPartition, shared: Shared) -> None:
    end = shared.ends.read(partition.partition_id)
    active = partition.active
    if end is None or end.end_offset <= active.end_offset:
        return
    if shared.store.evidence.binding and not shared.accept_loss:
        raise DamageError(
            f"{active.path} is damaged or truncated at position {active.size_bytes}: acknowledged records of"
            f" {partition.name}, offsets {active.end_offset} to {end.end_offset - 1}, are lost"
        )
    is_here = end.base_offset == active.base_offset
    repair_segment(partition, active, shared, end.position if is_here else active.size_bytes, end.end_offset)


def _remove_unlisted(partition: SegmentPartition, shared: Shared) -> None:
    """Remove files that the store does not list: leftovers of a roll or a compaction that was never flushed."""
    damaged = damaged_files(shared)
    known = {os.path.basename(path) for s in partition.segments for path in (s.path, s.index_path)}
    for name in os.listdir(partition.directory):
        path = os.path.join(partition.directory, name)
        if name in known or name.endswith(DAMAGED_SUFFIX) or path in damaged:
            continue
        if shared.accept_loss and name.endswith(".log"):
            # The store may have lost the row of a file that holds records.
            note_damaged_file(shared, path)
        else:
            shared.files.unlink(path)
