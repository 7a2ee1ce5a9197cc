"""Compaction of a segment partition: keep the last record of each key, drop expired tombstones.

One pass reads the dirty segments (sealed, and seen by no pass yet) and notes the last offset of each key. Then it
rewrites all segments from the first without the records that this supersedes, and without those of aborted transactions.
Segments with records of an open transaction, and those behind it, wait for its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from broker.protocol.record_batch import Record
from broker.protocol.wire_types import DecodeError, EncodeError
from broker.storage.digests import blake2b
from broker.storage.errors import DamageError, OutOfDescriptors
from broker.storage.segments.cleaned_segment import CleanedSegment, rebuilt, records_of
from broker.storage.segments.cleaned_transactions import CleanedTransactions
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.segment import Segment
from broker.storage.segments.shared import Shared
from broker.storage.segments.verification import StoredBatch

# Bounds the memory of a pass. Segments that did not fit stay dirty for the next one.
MAX_KEYS = 250_000


def dirty_segments(partition: SegmentPartition, wall_ms: int) -> list[Segment]:
    """The segments that no pass has seen, in order."""
    lag_ms = partition.policy.min_compaction_lag_ms
    found = []
    for segment in partition.segments[:-1]:
        if segment.compacted_at_ms >= 0:
            continue
        if segment.end_offset > partition.last_stable_offset or (lag_ms and segment.max_timestamp > wall_ms - lag_ms):
            break
        found.append(segment)
    return found


def wants_compaction(partition: SegmentPartition, wall_ms: int) -> bool:
    policy = partition.policy
    if not policy.compact or len(partition.segments) < 2:
        return False
    dirty = dirty_segments(partition, wall_ms)
    if not dirty:
        return False
    if wall_ms - dirty[0].first_timestamp > policy.max_compaction_lag_ms:
        return True
    dirty_bytes = sum(segment.size_bytes for segment in dirty)
    clean_bytes = sum(segment.size_bytes for segment in partition.segments[:-1] if segment.compacted_at_ms >= 0)
    return dirty_bytes >= policy.min_cleanable_dirty_ratio * (dirty_bytes + clean_bytes)


def compact(partition: SegmentPartition, shared: Shared, wall_ms: int) -> Iterator[None]:
    """Run one pass in slices of one batch; appends and flushes may run between them."""
    last_offsets: dict[bytes, int] = {}
    mapped: Segment | None = None
    transactions = CleanedTransactions(partition, wall_ms)
    for segment in dirty_segments(partition, wall_ms):
        if len(last_offsets) >= MAX_KEYS:
            break
        transactions.enter(segment)
        for batch in segment.batches(segment.base_offset, 0):
            if not batch.header.is_control and not transactions.is_aborted(batch.header):
                for record in records_of(batch.content, batch.header) or ():
                    if record.key is not None:
                        last_offsets[_digest(record.key)] = record.offset
            yield
            if _is_gone(partition, segment):
                return
        mapped = segment
    if mapped is None:
        return
    cleaner = _Cleaner(partition, last_offsets, wall_ms)
    for segment in list(partition.segments[:-1]):
        if segment.base_offset > mapped.base_offset or partition.deleted:
            return
        if segment not in partition.segments:
            continue
        yield from _rewrite(partition, segment, shared, cleaner, wall_ms)


def _rewrite(
    partition: SegmentPartition, segment: Segment, shared: Shared, cleaner: _Cleaner, wall_ms: int
) -> Iterator[None]:
    """Write what stays of one segment to a new file, and put it in the place of the old one."""
    cleaner.enter(segment)
    writer = CleanedSegment(segment, wall_ms)
    try:
        for batch in segment.batches(segment.base_offset, 0):
            stays = cleaner.cleaned(batch)
            if not writer.started and stays is not batch.content:
                yield from _copy(partition, segment, batch.position, writer)
                if _is_gone(partition, segment):
                    return writer.discard()
            if writer.started and stays is not None:
                writer.add(stays)
            yield
            if _is_gone(partition, segment):
                return writer.discard()
        if writer.started:
            keeps_end = segment.end_offset == partition.high_watermark
            partition.replace_segment(segment, writer.finish(shared, keeps_end=keeps_end))
    except (DamageError, OutOfDescriptors, DecodeError, EncodeError):
        writer.discard()
        raise
    if not writer.started and segment.compacted_at_ms < 0:
        segment.compacted_at_ms = wall_ms
        partition.segment_changed(segment)


def _is_gone(partition: SegmentPartition, segment: Segment) -> bool:
    """Between two slices the topic may be deleted, or retention or DeleteRecords may drop the segment."""
    return partition.deleted or segment not in partition.segments


def _copy(partition: SegmentPartition, segment: Segment, until: int, writer: CleanedSegment) -> Iterator[None]:
    """Copy the batches before the first one that changes."""
    writer.started = True
    for batch in segment.batches(segment.base_offset, 0):
        if batch.position >= until:
            return
        writer.add(batch.content)
        yield
        if _is_gone(partition, segment):
            return


class _Cleaner:
    """Says what stays of each batch; it sees all batches of a pass in order."""

    def __init__(self, partition: SegmentPartition, last_offsets: dict[bytes, int], wall_ms: int) -> None:
        self._last_offsets = last_offsets
        self._wall_ms = wall_ms
        self._delete_retention_ms = partition.policy.delete_retention_ms
        self._transactions = CleanedTransactions(partition, wall_ms)
        self._drops_tombstones = False

    def enter(self, segment: Segment) -> None:
        self._transactions.enter(segment)
        first_ms = segment.compacted_at_ms
        self._drops_tombstones = first_ms >= 0 and self._wall_ms - first_ms > self._delete_retention_ms

    def cleaned(self, batch: StoredBatch) -> bytes | None:
        """The batch itself if it does not change, or what stays of it, or None."""
        header = batch.header
        if header.is_control:
            return self._transactions.cleaned_marker(batch)
        if self._transactions.pass_records(header):
            kept: list[Record] = []
        else:
            records = records_of(batch.content, header)
            kept = [] if records is None else [record for record in records if self._stays(record)]
            if records is None or (len(kept) == len(records) and (records or header.producer_id < 0)):
                return batch.content
        if kept:
            # What our format cannot express stays as the producer sent it.
            with suppress(EncodeError):
                return rebuilt(header, kept, header.base_offset)
            return batch.content
        emptied = self._transactions.emptied(header)
        return batch.content if emptied is not None and not header.record_count else emptied

    def _stays(self, record: Record) -> bool:
        if record.key is None:
            return False
        last = self._last_offsets.get(_digest(record.key))
        if last is not None and last > record.offset:
            return False
        # A later value of the key, in a dirty segment, would have been found above.
        return record.value is not None or not self._drops_tombstones


def _digest(key: bytes) -> bytes:
    return key if len(key) <= 16 else blake2b(key, digest_size=17).digest()
