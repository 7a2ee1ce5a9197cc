"""After a crash: which bytes behind the recorded end of a partition are good, and whether acknowledged ones are gone.

Whole valid batches behind the recorded end are kept (they may have been acknowledged), synced and recorded. What
follows them is a torn write and is cut, unless the synced end says that it had been acknowledged.
"""

from __future__ import annotations

import os

from broker.storage.errors import DamageError
from broker.storage.segments.partition import SegmentPartition, Shared
from broker.storage.segments.repair import DAMAGED_SUFFIX, repair_segment
from broker.storage.store.partition_rows import mark_unrecorded


def recover_partition(partition: SegmentPartition, shared: Shared) -> None:
    """Bring one partition that was being written to back to a recorded state, as part of the store's transaction."""
    if not partition.segments:
        # Its first append never became durable.
        mark_unrecorded(shared.store, partition.partition_id, False)
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
    _remove_strangers(partition, shared)
    partition.record(complete=True)
    partition.advance()


def _is_synced(partition: SegmentPartition, shared: Shared) -> bool:
    """The last run has synced all that there is, and said so."""
    end = shared.ends.read(partition.partition_id)
    return shared.store.was_synced and end is not None and end.end_offset == partition.active.end_offset


def _check_synced_end(partition: SegmentPartition, shared: Shared) -> None:
    end = shared.ends.read(partition.partition_id)
    active = partition.active
    if end is None or end.end_offset <= active.end_offset:
        return
    if shared.store.binding and not shared.accept_loss:
        raise DamageError(
            f"{active.path} is damaged or cut at position {active.size_bytes}: acknowledged records of"
            f" {partition.name}, offsets {active.end_offset} to {end.end_offset - 1}, are gone"
        )
    is_here = end.base_offset == active.base_offset
    repair_segment(partition, active, shared, end.position if is_here else active.size_bytes, end.end_offset)


def _remove_strangers(partition: SegmentPartition, shared: Shared) -> None:
    """Files that no row lists: left-overs of a roll or a compaction that did not become durable."""
    known = {os.path.basename(path) for s in partition.segments for path in (s.path, s.index_path)}
    for name in os.listdir(partition.directory):
        path = os.path.join(partition.directory, name)
        if name in known or name.endswith(DAMAGED_SUFFIX) or path in shared.quarantine:
            continue
        if shared.accept_loss and name.endswith(".log"):
            # The store may have lost the row of a file that holds records.
            shared.quarantine.append(path)
        else:
            shared.files.unlink(path)
