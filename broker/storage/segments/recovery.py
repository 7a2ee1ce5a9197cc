"""Recovery at the start: compare segment files with what the store lists, and read the tails that it does not list.

Whole valid batches beyond the checkpoint of a partition are kept, as they may have been acknowledged; they are synced
and listed. What follows them is a torn write and is cut, unless the synced end proves that it was acknowledged.

Nothing on disk changes before all partitions of a batch are checked, so a start that is refused leaves the evidence.
Each batch of partitions is committed, so the next start continues where one was killed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from broker.protocol.record_batch import HEADER_BYTES, parse_header
from broker.storage.errors import DamageError
from broker.storage.segments.end_checks import CheckedEnds
from broker.storage.segments.leftovers import DAMAGED_SUFFIX, damaged_files, note_damaged_file
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.partition_table import mark_beyond_checkpoint
from broker.storage.segments.repair import refuse, repair_partition, repair_segment, short_segments
from broker.storage.segments.shared import Shared
from broker.storage.segments.synced_ends import SyncedEnd
from broker.storage.store.catalog import Topic, Topics

PARTITIONS_PER_COMMIT = 500


class Recovery:
    """One start. `begin` runs before the first change, `commit` after each batch of partitions."""

    def __init__(
        self,
        shared: Shared,
        topics: Topics,
        open_partition: Callable[[Topic, int], SegmentPartition],
        commit: Callable[[], None],
    ) -> None:
        self._shared = shared
        self._topics = topics
        self._open_partition = open_partition
        self._commit = commit
        self._ends = CheckedEnds(shared, topics)
        self._has_begun = False

    def run(self) -> list[str]:
        """Check all partitions; describe those that were being written to when the last run ended.

        DamageError: a segment file is missing or truncated, or acknowledged records are damaged, and losses are not
        accepted.
        """
        shared = self._shared
        short = short_segments(shared, self._topics)
        if short and shared.store.evidence.binding and not shared.accept_loss:
            raise refuse(short)
        if shared.accept_loss:
            self._begin()
            for number in self._ends.listed:
                partition = self._open(number)
                if partition is not None:
                    repair_partition(partition, shared, self._ends.of(number))
        elif short:
            self._begin()
            for topic, index in {(entry.topic.name, entry.partition): entry for entry in short}:
                partition = self._open_partition(self._topics[topic], index)
                repair_partition(partition, shared, self._ends.of(partition.partition_id))
        else:
            self._check_sealed_ends()
        recovered = self._recover_tails()
        self._begin()
        shared.ends.forget_start()
        return recovered

    def _begin(self) -> None:
        """All checks passed: the files of an older format are replaced, and those that are missing are written."""
        if not self._has_begun:
            self._has_begun = True
            self._shared.store.evidence.begin()
            self._ends.begin()

    def _open(self, number: int) -> SegmentPartition | None:
        listed = self._ends.listed[number]
        topic = self._topics.by_id(listed.topic_id)
        return self._open_partition(topic, listed.partition) if topic is not None else None

    # -- active segments

    def _check_sealed_ends(self) -> None:
        """Active segments that the store lists completely end with the batch that their synced end names."""
        for number, listed in self._ends.listed.items():
            if not listed.is_beyond_checkpoint and not listed.has_trailer:
                partition, end = self._open(number), self._ends.of(number)
                if partition is not None and end is not None:
                    _check_last_batch(partition, end, self._shared)

    def _recover_tails(self) -> list[str]:
        recovered: list[str] = []
        numbers = self._ends.to_scan()
        for first in range(0, len(numbers), PARTITIONS_PER_COMMIT):
            partitions = []
            for number in numbers[first : first + PARTITIONS_PER_COMMIT]:
                partition = self._open(number)
                if partition is not None:
                    end = self._ends.of(number)
                    _scan(partition, end, self._shared)
                    partitions.append((partition, end))
            self._begin()
            for partition, end in partitions:
                _settle(partition, end, self._shared)
                recovered.append(f"{partition.name} up to offset {partition.log_end_offset}")
            self._commit()
        return recovered


def _scan(partition: SegmentPartition, end: SyncedEnd | None, shared: Shared) -> None:
    """Find the end of one partition that was being written to. Nothing changes on disk."""
    if not partition.segments:
        if end is not None and end.end_offset > 0 and shared.store.evidence.binding and not shared.accept_loss:
            raise DamageError(
                f"{shared.store.path} lists no segment of {partition.name}: offsets up to {end.end_offset - 1} are lost"
            )
        return
    active, producers = partition.active, partition.producers
    for header in active.scan_tail():
        if header.producer_id >= 0:
            producers.note(header)
    if end is None or shared.accept_loss or not shared.store.evidence.binding:
        return
    if end.end_offset > active.end_offset:
        raise DamageError(
            f"{active.path} is damaged or truncated at position {active.size_bytes}: acknowledged records of"
            f" {partition.name}, offsets {active.end_offset} to {end.end_offset - 1}, are lost"
        )
    _check_last_batch(partition, end, shared)


def _check_last_batch(partition: SegmentPartition, end: SyncedEnd, shared: Shared) -> None:
    """The active segment must have the batch that the synced end names: else it is another file, or an older one."""
    active = partition.active
    if not end.last_size or end.base_offset != active.base_offset or end.position > active.size_bytes:
        return
    head = active.file().read(HEADER_BYTES, end.position - end.last_size)
    if len(head) == HEADER_BYTES:
        header = parse_header(head)
        if (header.size_bytes, header.next_offset, header.crc) == (end.last_size, end.end_offset, end.last_crc):
            return
    if shared.store.evidence.binding and not shared.accept_loss:
        raise DamageError(
            f"{active.path} is damaged or was replaced: it does not have the acknowledged batch of {partition.name} that"
            f" ends at offset {end.end_offset - 1}"
        )


def _settle(partition: SegmentPartition, end: SyncedEnd | None, shared: Shared) -> None:
    """Cut what is torn, sync the rest, and write the checkpoint of one scanned partition to the transaction."""
    if not partition.segments:
        # Its first append was never flushed.
        mark_beyond_checkpoint(shared.store, partition.partition_id, False)
        return
    active = partition.active
    if end is not None and end.end_offset > active.end_offset:
        is_here = end.base_offset == active.base_offset
        repair_segment(partition, active, shared, end.position if is_here else active.size_bytes, end.end_offset)
        active = partition.active
    is_cut = active.cut_remains()
    is_synced = shared.store.evidence.was_synced and end is not None and end.end_offset == active.end_offset
    if is_cut or not is_synced:
        shared.files.sync(active.file())
    _remove_unlisted(partition, shared)
    partition.checkpoint(complete=True)
    partition.advance()


def _remove_unlisted(partition: SegmentPartition, shared: Shared) -> None:
    """Remove files that the store does not list: leftovers of a roll or a compaction that was never flushed."""
    damaged = damaged_files(shared)
    known = {os.path.basename(path) for s in partition.segments for path in (s.path, s.index_path)}
    for name in os.listdir(partition.directory):
        path = os.path.join(partition.directory, name)
        if name in known or name.endswith(DAMAGED_SUFFIX) or path in damaged:
            continue
        if name.endswith(".log") and (shared.accept_loss or not shared.store.evidence.binding):
            # The store may have lost the row of a file that holds records.
            note_damaged_file(shared, path)
        else:
            shared.files.unlink(path)
