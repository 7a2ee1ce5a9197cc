"""After a crash: which bytes behind the recorded end of a partition are good, and whether acknowledged ones are gone.

Whole valid batches behind the recorded end are kept (they may have been acknowledged), synced and recorded. What
follows them is a torn write and is cut, unless the synced end says that it had been acknowledged.
"""

from __future__ import annotations

import os

from broker.log.partition import SegmentPartition, Shared
from broker.log.partition_rows import mark_unrecorded


def recover_partition(partition: SegmentPartition, shared: Shared) -> None:
    """Bring one partition that was being written to back to a recorded state, as part of the store's transaction."""
    if not partition.segments:
        # Its first append never became durable.
        mark_unrecorded(shared.store, partition.partition_id, False)
        return
    active = partition.active
    producers = partition.producers
    for header in active.scan_tail():
        if header.producer_id >= 0:
            producers.note(header)
    _check_synced_end(partition, shared)
    active.cut()
    shared.files.sync(active.file())
    _remove_strangers(partition, shared)
    partition.record(complete=True)
    partition.advance()


def _check_synced_end(partition: SegmentPartition, shared: Shared) -> None:
    end = shared.ends.read(partition.partition_id)
    active = partition.active
    if end is None or end.end_offset <= active.end_offset:
        return
    message = (
        f"{active.path} is damaged or cut at position {active.size_bytes}: acknowledged records of {partition.name},"
        f" offsets {active.end_offset} to {end.end_offset - 1}, are gone"
    )
    shared.store.lose(message, shared.accept_loss or not shared.store.binding)
    shared.ends.clear(partition.partition_id)


def _remove_strangers(partition: SegmentPartition, shared: Shared) -> None:
    """Files that no row lists: left-overs of a roll or a compaction that did not become durable."""
    known = {os.path.basename(path) for s in partition.segments for path in (s.path, s.index_path)}
    for name in os.listdir(partition.directory):
        if name not in known:
            shared.files.unlink(os.path.join(partition.directory, name))
