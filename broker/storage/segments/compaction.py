"""Compaction of a segment partition: keep the last record of each key, drop expired tombstones.

One pass reads the dirty segments (sealed, and seen by no pass yet) and notes the last offset of each key. Then it
rewrites all segments from the first without the records that this supersedes. Offsets never change: a batch is
stretched over the offsets of what was removed behind it, so no offset is ever missing within a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from broker.protocol.compression import Codec
from broker.protocol.record_batch import BatchHeader, Record, build_batch, parse_header
from broker.protocol.wire_types import DecodeError, EncodeError
from broker.storage.digests import blake2b
from broker.storage.errors import DamageError, OutOfDescriptors
from broker.storage.segments.batch_fields import empty_batch, set_last_offset
from broker.storage.segments.bounded_records import decoded
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.segment import Segment
from broker.storage.segments.shared import Shared

# Bounds the memory of a pass. Segments that did not fit stay dirty for the next one.
MAX_KEYS = 250_000


def dirty_segments(partition: SegmentPartition, wall_ms: int) -> list[Segment]:
    """The segments that no pass has seen, in order."""
    lag_ms = partition.policy.min_compaction_lag_ms
    found = []
    for segment in partition.segments[:-1]:
        if segment.compacted_at_ms >= 0:
            continue
        if segment.end_offset > partition.high_watermark or (lag_ms and segment.max_timestamp > wall_ms - lag_ms):
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
    for segment in dirty_segments(partition, wall_ms):
        if len(last_offsets) >= MAX_KEYS:
            break
        for batch in segment.batches(segment.base_offset, 0):
            for record in _decoded(batch.content, batch.header) or ():
                if record.key is not None:
                    last_offsets[_digest(record.key)] = record.offset
            yield
            if _is_gone(partition, segment):
                return
        mapped = segment
    if mapped is None:
        return
    for segment in list(partition.segments[:-1]):
        if segment.base_offset > mapped.base_offset or partition.deleted:
            return
        if segment not in partition.segments:
            continue
        yield from _rewrite(partition, segment, shared, last_offsets, wall_ms)


def _rewrite(
    partition: SegmentPartition, segment: Segment, shared: Shared, last_offsets: dict[bytes, int], wall_ms: int
) -> Iterator[None]:
    """Write the records of one segment that stay to a new file, and put it in the place of the old one."""
    drop_tombstones = (
        segment.compacted_at_ms >= 0 and wall_ms - segment.compacted_at_ms > partition.policy.delete_retention_ms
    )
    writer = _Writer(segment, wall_ms)
    try:
        for batch in segment.batches(segment.base_offset, 0):
            records = _decoded(batch.content, batch.header)
            kept = None if records is None else [r for r in records if _stays(r, last_offsets, drop_tombstones)]
            if not writer.started and kept is not None and len(kept) != len(records or ()):
                yield from _copy(partition, segment, batch.position, writer)
                if _is_gone(partition, segment):
                    return writer.discard()
            if writer.started:
                writer.add_kept(batch.content, batch.header, kept)
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


def _copy(partition: SegmentPartition, segment: Segment, until: int, writer: _Writer) -> Iterator[None]:
    """Copy the batches before the first one that changes."""
    writer.started = True
    for batch in segment.batches(segment.base_offset, 0):
        if batch.position >= until:
            return
        writer.add(batch.content)
        yield
        if _is_gone(partition, segment):
            return


def _stays(record: Record, last_offsets: dict[bytes, int], drop_tombstones: bool) -> bool:
    if record.key is None:
        return False
    last = last_offsets.get(_digest(record.key))
    if last is not None and last > record.offset:
        return False
    # A later value of the key, in a dirty segment, would have been found above.
    return record.value is not None or not drop_tombstones


class _Writer:
    """Writes the successor of one segment. Each batch is held until the base offset of the next one is known."""

    def __init__(self, old: Segment, wall_ms: int) -> None:
        self._old = old
        self._new = Segment(
            old.files,
            old.place,
            old.base_offset,
            interval_bytes=old.interval_bytes,
            revision=old.revision + 1,
            compacted_at_ms=old.compacted_at_ms if old.compacted_at_ms >= 0 else wall_ms,
        )
        self._held: bytes | None = None
        self._created = False
        self.started = False  # a record is removed, so a successor is needed

    def add_kept(self, batch: bytes, header: BatchHeader, kept: list[Record] | None) -> None:
        """Add a batch of the old segment with the records that stay (None: all of them, as they cannot be decoded)."""
        if kept is None or len(kept) == header.record_count:
            self.add(batch)
        elif kept:
            # What our format cannot express stays as the producer sent it.
            with suppress(EncodeError):
                batch = _rebuilt(header, kept, header.base_offset)
            self.add(batch)

    def add(self, batch: bytes) -> None:
        base_offset = parse_header(batch).base_offset
        if self._held is not None:
            self._write(_stretched(self._held, base_offset))
        elif base_offset > self._old.base_offset:
            # The file keeps its name, so its first batch must keep the base offset.
            extended = _extended(batch, self._old.base_offset)
            if extended is None:
                self._write(empty_batch(self._old.base_offset, base_offset))
            else:
                batch = extended
        self._held = batch

    def _write(self, batch: bytes) -> None:
        if not self._created:
            self._new.create()
            self._created = True
        file = self._new.file()
        file.write(batch, self._new.size_bytes)
        self._new.note(parse_header(batch), self._new.size_bytes, len(batch))

    def finish(self, shared: Shared, *, keeps_end: bool) -> Segment | None:
        """Return the new segment, synced, or None if no record stays.

        `keeps_end`: no record follows this segment, so it keeps an empty batch that leads readers to the log end
        (KAFKA-17076, KAFKA-20452).
        """
        if self._held is None:
            if not keeps_end:
                return None
            self._held = empty_batch(self._old.base_offset, self._old.end_offset)
        self._write(_stretched(self._held, self._old.end_offset))
        self._new.save_index()
        shared.files.sync(self._new.seal())
        shared.files.sync_directory(self._new.place.directory)
        return self._new

    def discard(self) -> None:
        if self._created:
            self._old.files.unlink(self._new.path)


def _decoded(batch: bytes, header: BatchHeader) -> list[Record] | None:
    """The records of a batch; None if they cannot be decoded, and the batch stays as it is."""
    try:
        records = decoded(batch)
    except DecodeError:
        return None
    offset = header.base_offset - 1
    for record in records:
        if not offset < record.offset <= header.last_offset:
            # Out of order: the last record of a key is undefined.
            return None
        offset = record.offset
    return records


def _extended(batch: bytes, base_offset: int) -> bytes | None:
    """The batch with an earlier base offset; None if it has to stay as it is."""
    header = parse_header(batch)
    records = _decoded(batch, header)
    try:
        return None if records is None else _rebuilt(header, records, base_offset)
    except EncodeError:
        return None


def _rebuilt(header: BatchHeader, records: list[Record], base_offset: int) -> bytes:
    return build_batch(
        records,
        codec=Codec(header.codec),
        base_offset=base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.partition_leader_epoch,
        log_append_time_ms=header.max_timestamp if header.has_log_append_time else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )


def _stretched(batch: bytes, next_offset: int) -> bytes:
    """The batch with a last offset just below `next_offset`."""
    header = parse_header(batch)
    if header.next_offset == next_offset:
        return batch
    changed = bytearray(batch)
    set_last_offset(changed, header.base_offset, next_offset - 1)
    return bytes(changed)


def _digest(key: bytes) -> bytes:
    return key if len(key) <= 16 else blake2b(key, digest_size=17).digest()
