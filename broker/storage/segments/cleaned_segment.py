"""The successor of a segment that compaction rewrites.

Offsets never change, and none is ever missing within a file: a batch is stretched over the offsets of what was removed
behind it. Transactional batches and markers are not, because readers relate their offsets to those of aborted transactions;
an empty batch follows them instead.
"""

from __future__ import annotations

from broker.protocol.compression import Codec
from broker.protocol.record_batch import BatchHeader, Record, build_batch, parse_header
from broker.protocol.wire_types import DecodeError, EncodeError
from broker.storage.segments.batch_fields import empty_batch, set_last_offset
from broker.storage.segments.bounded_records import decoded
from broker.storage.segments.segment import Segment
from broker.storage.segments.shared import Shared


class CleanedSegment:
    """Each batch is held until the base offset of the next one is known."""

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
        self.started = False  # a batch changes, so a successor is needed

    def add(self, batch: bytes) -> None:
        header = parse_header(batch)
        if _is_filler(header):
            return
        base_offset = header.base_offset
        if self._held is not None:
            self._write_held(base_offset)
        elif base_offset > self._old.base_offset:
            # The file keeps its name, so its first batch must keep the base offset.
            extended = None if _is_fixed(header) else _extended(batch, self._old.base_offset)
            if extended is None:
                self._fill(self._old.base_offset, base_offset)
            else:
                batch = extended
        self._held = batch

    def _write_held(self, next_offset: int) -> None:
        assert self._held is not None
        header = parse_header(self._held)
        if _is_fixed(header):
            self._write(self._held)
            self._fill(header.next_offset, next_offset)
        else:
            self._write(_stretched(self._held, next_offset))

    def _fill(self, offset: int, until: int) -> None:
        if offset < until:
            self._write(empty_batch(offset, until))

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
        if self._held is not None:
            self._write_held(self._old.end_offset)
        elif keeps_end:
            self._fill(self._old.base_offset, self._old.end_offset)
        else:
            return None
        self._new.save_index()
        shared.files.sync(self._new.seal())
        shared.files.sync_directory(self._new.place.directory)
        return self._new

    def discard(self) -> None:
        if self._created:
            self._old.files.unlink(self._new.path)


def _is_filler(header: BatchHeader) -> bool:
    """A batch that only covers offsets: what is needed of it is written again."""
    return header.record_count == 0 and header.producer_id < 0


def _is_fixed(header: BatchHeader) -> bool:
    return header.is_transactional or (header.record_count == 0 and header.producer_id >= 0)


def records_of(batch: bytes, header: BatchHeader) -> list[Record] | None:
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
    records = records_of(batch, header)
    try:
        return None if records is None else rebuilt(header, records, base_offset)
    except EncodeError:
        return None


def rebuilt(header: BatchHeader, records: list[Record], base_offset: int) -> bytes:
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
        is_transactional=header.is_transactional,
    )


def _stretched(batch: bytes, next_offset: int) -> bytes:
    """The batch with a last offset just below `next_offset`."""
    header = parse_header(batch)
    if header.next_offset == next_offset:
        return batch
    changed = bytearray(batch)
    set_last_offset(changed, header.base_offset, next_offset - 1)
    return bytes(changed)
