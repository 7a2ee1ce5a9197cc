"""A segment file: whole record batches one after the other, in a file named by the offset of the first.

An active segment may end in preallocated zeros; overwriting them makes a sync much cheaper than growing the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from functools import partial

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, BatchHeader, check_crc, parse_header
from broker.storage.errors import DamageError, OutOfDescriptors
from broker.storage.file_ops import Buffer
from broker.storage.files import Files, FileSlice, OpenFile
from broker.storage.partition_log import LEADER_EPOCH
from broker.storage.segments.index import Index
from broker.storage.segments.segment_file import PREALLOCATED_BYTES, Place, SegmentFile
from broker.storage.segments.trailer import chained, segment_id_crc
from broker.storage.segments.verification import SCAN_BYTES, StoredBatch, check_again, checked_batches, checked_end

# Flushes of larger batches are limited by bandwidth, not by the cost of growing a file.
PREALLOCATE_BELOW_BYTES = 64 << 10
WALK_BYTES = 16 << 10
# What one slice holds at most, except for a larger batch: checking it takes some milliseconds, in which nothing else runs.
SLICE_BYTES, SLICE_BATCHES = 8 << 20, 4096

_WALK = struct.Struct(">qi11xi")  # base offset, length, last offset delta


class Spot(NamedTuple):
    """The place of one batch."""

    position: int
    size: int
    base_offset: int
    last_offset: int

    @property
    def end(self) -> int:
        return self.position + self.size


class Segment(SegmentFile):
    """One file. `size_bytes` and `end_offset` count whole batches, not preallocated zeros or the trailer."""

    __slots__ = (
        "_index",
        "_index_file_bytes",
        "compacted_at_ms",
        "first_timestamp",
        "interval_bytes",
        "last_crc",
        "last_size",
        "max_timestamp",
        "max_timestamp_offset",
    )

    def __init__(
        self,
        files: Files,
        place: Place,
        base_offset: int,
        *,
        interval_bytes: int,
        revision: int = 0,
        end_offset: int | None = None,
        size_bytes: int = 0,
        first_timestamp: int = -1,
        max_timestamp: int = -1,
        max_timestamp_offset: int = -1,
        compacted_at_ms: int = -1,
        digest: int | None = 0,
        has_trailer: bool = False,
    ) -> None:
        super().__init__(
            files,
            place,
            base_offset,
            revision=revision,
            end_offset=end_offset,
            size_bytes=size_bytes,
            digest=digest,
            has_trailer=has_trailer,
        )
        self.interval_bytes = interval_bytes
        self.first_timestamp = first_timestamp
        self.max_timestamp = max_timestamp
        self.max_timestamp_offset = max_timestamp_offset
        self.compacted_at_ms = compacted_at_ms
        self.last_size = self.last_crc = 0  # of the last batch, as far as this run wrote or read it
        self._index: Index | None = None
        self._index_file_bytes = 0

    def create(self) -> OpenFile:
        """Create the file, or empty one that a crash left behind."""
        self._file_seen = True
        self._index = Index(self.interval_bytes, self._id_crc())
        file = self.files.get(self.path, create=True)
        if file.size():
            file.truncate(0)
        return file

    # -- writing

    def prepare(self) -> OpenFile:
        """Open everything that an append needs, so that it has no reason to fail once it writes."""
        _ = self.index
        return self.writable()

    def append(self, batch: Buffer, header: BatchHeader) -> OpenFile:
        """Write one whole batch at the end of the segment."""
        file = self.writable()
        position, size = self.size_bytes, len(batch)
        if position + size > self.allocated:
            self._preallocate(file, position + size, size)
        file.write(batch, position)
        self.note(header, position, size)
        return file

    def _preallocate(self, file: OpenFile, needed: int, size: int) -> None:
        self.allocated = needed
        if size < PREALLOCATE_BELOW_BYTES:
            low, high = PREALLOCATED_BYTES
            more = min(high, max(low, self.size_bytes))
            file.write(bytes(more), needed)
            self.allocated += more

    def note(self, header: BatchHeader, position: int, size: int) -> None:
        """Count a batch whose bytes are known to be good as part of the segment."""
        self.index.add(header.base_offset, position, self.max_timestamp)
        if position == 0:
            self.first_timestamp = header.base_timestamp
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.max_timestamp_offset = header.base_offset
        self.size_bytes = position + size
        self.end_offset = header.next_offset
        self.last_size, self.last_crc = size, header.crc
        if self.digest is not None:
            self.digest = chained(self.digest, header.base_offset, header.batch_length, header.crc)

    # -- index

    def _id_crc(self) -> int:
        _, topic_id, partition = self.place
        return segment_id_crc(topic_id, partition, self.base_offset, self.revision)

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = self._load_index()
        return self._index

    def _load_index(self) -> Index:
        content = b""
        if os.path.exists(self.index_path):
            file = self.files.get(self.index_path)
            content = file.read(file.size(), 0)
            self.files.forget(self.index_path)
        index, held = Index.load(content, self.interval_bytes, self._id_crc(), self.size_bytes, self.base_offset)
        if held < len(content):
            file.truncate(held)
        self._index_file_bytes = held
        offset, position, timestamp = index.last or (self.base_offset, 0, -1)
        try:
            for batch in self.batches(offset, position):
                index.add(batch.header.base_offset, batch.position, timestamp)
                timestamp = max(timestamp, batch.header.max_timestamp)
        except DamageError:
            # Readers meet it where it is; the batches before it can still be found.
            pass
        return index

    def save_index(self) -> None:
        """Append new entries to the index file, unless descriptors run out. It is never synced: it can be rebuilt."""
        if self._index is None or not self._index.has_unsaved:
            return
        try:
            file = self.files.get(self.index_path, create=True)
        except OutOfDescriptors:
            return
        chunk = self._index.unsaved_chunk()
        file.write(chunk, self._index_file_bytes)
        self._index_file_bytes += len(chunk)
        self.files.forget(self.index_path)

    def drop_index(self) -> None:
        """Save the index and free its memory."""
        self.save_index()
        self._index = None

    # -- reading

    def batches(self, offset: int, position: int, chunk_bytes: int = SCAN_BYTES) -> Iterator[StoredBatch]:
        """Yield the batches from `position`, whose base offset is `offset`, to the end, with checked CRCs.

        No offset is ever missing between two batches: a batch covers the offsets that compaction removed behind it.
        """
        self.file()
        end, end_offset = self.size_bytes, self.end_offset
        digest, expected = (0, self.digest) if position == 0 else (None, None)
        for batch in checked_batches(self._read, self.damage, offset, position, end, chunk_bytes):
            yield batch
            header = batch.header
            offset = header.next_offset
            if digest is not None:
                digest = chained(digest, header.base_offset, header.batch_length, header.crc)
        if offset != end_offset or (expected is not None and digest != expected):
            raise self.damage(end)

    def verify(self) -> None:
        """Read everything; DamageError at the first batch that is not as it was written."""
        for _ in self.batches(self.base_offset, 0):
            pass

    def find_offset(self, offset: int, until: int) -> Spot | None:
        """The first batch with `offset` or a later offset that ends at or before `until`. Its CRC is not checked."""
        start, position = self.index.at_offset(offset) or (self.base_offset, 0)
        file = self.file()
        while position < until:
            chunk = file.read(min(WALK_BYTES, until - position), position)
            at = 0
            while at + _WALK.size <= len(chunk):
                base_offset, length, last_delta = _WALK.unpack_from(chunk, at)
                spot = Spot(position + at, length + LOG_OVERHEAD_BYTES, base_offset, base_offset + last_delta)
                if base_offset != start or spot.size < HEADER_BYTES or last_delta < 0 or spot.end > until:
                    raise self.damage(position + at)
                if spot.last_offset >= offset:
                    return spot
                start = spot.last_offset + 1
                at += spot.size
            if at == 0:
                raise self.damage(position)
            position += at
        if until and offset < self.end_offset:
            # A changed length or last offset leads past the batch.
            raise self.damage(position)
        return None

    def find_timestamp(self, timestamp: int, until: int) -> Iterator[StoredBatch]:
        """Yield candidates for the first record at or after `timestamp`: a batch may promise one and have none."""
        base_offset, position = self.index.at_timestamp(timestamp) or (self.base_offset, 0)
        for batch in self.batches(base_offset, position, WALK_BYTES):
            if batch.position >= until:
                return
            if batch.header.max_timestamp >= timestamp:
                yield batch

    def slice(self, spot: Spot, limit: int) -> FileSlice:
        """The batch at `spot` and those behind it that end at or before `limit`, up to the first damaged one."""
        longest = max(spot.position + SLICE_BYTES, spot.end)
        limit = max(limit, spot.end)
        file = self._file()
        end, end_offset, is_cut = checked_end(
            file.read, self.damage, spot.base_offset, spot.position, min(limit, longest), SLICE_BATCHES
        )
        check = partial(check_again, self.damage, spot.base_offset, spot.position, end)
        found = self.files.slice(file, spot.position, end - spot.position, check)
        found.end_offset = end_offset
        found.is_cut = is_cut or limit > longest
        return found

    # -- recovery

    def scan_tail(self, is_uncommitted: Callable[[BatchHeader], bool] | None = None) -> Iterator[StoredBatch]:
        """Yield the whole, valid batches behind the checkpoint, counting each as part of the segment.

        Stop at the first bytes that are not the next batch, be it zeros, a torn batch or damage, and at the first batch
        that `is_uncommitted`.
        """
        file = self.writable()
        length = file.size()
        while self.size_bytes + HEADER_BYTES <= length:
            position = self.size_bytes
            size = LOG_OVERHEAD_BYTES + int.from_bytes(file.read(4, position + 8), "big", signed=True)
            if not HEADER_BYTES <= size <= length - position:
                return
            batch = file.read(size, position)
            header = parse_header(batch)
            if (
                header.base_offset != self.end_offset
                or header.magic != 2
                or header.partition_leader_epoch != LEADER_EPOCH
                or header.size_bytes != size
                or header.last_offset_delta < 0
                or not check_crc(batch, 0, header)
                or (is_uncommitted is not None and is_uncommitted(header))
            ):
                return
            self.note(header, position, size)
            yield StoredBatch(position, header, batch)
