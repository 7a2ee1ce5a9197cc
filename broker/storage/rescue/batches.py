"""Whole batches of a segment file, whatever lies between them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, BatchHeader, check_crc, parse_header
from broker.storage.partition_log import LEADER_EPOCH
from broker.storage.rescue.reading import WINDOW_BYTES, SourceFile
from broker.storage.segments.verification import BATCH_MARK, BATCH_MARK_AT, may_be_batch

MOST_FINAL_ZEROS = 9
# Without other evidence, no damage hides more offsets than these.
MOST_OFFSETS_SKIPPED = 1 << 20
_UNCHECKED = struct.Struct(">qiib")  # the fields that the checksum of a batch does not cover


class Batch(NamedTuple):
    position: int
    content: bytes
    header: BatchHeader


class SegmentFile(NamedTuple):
    """A file of a partition. If it is known where its acknowledged batches end: that offset and position."""

    path: Path
    base_offset: int
    revision: int
    end_offset: int | None = None
    end_position: int | None = None


def whole_batches(segment: SegmentFile, until: int | None) -> Iterator[Batch]:
    """Yield the undamaged batches below the offset `until`.

    Batches follow each other without a gap, in the file and in offsets. So a batch whose header is damaged where its
    checksum does not reach (base offset, length, leader epoch, magic) gets these fields back.
    """
    scan = _Scan(segment, until)
    batch = scan.next_batch()
    while batch is not None:
        yield batch
        batch = scan.next_batch()


def first_offset(segment: SegmentFile) -> int:
    """Where the records in the file begin; at its base offset if that cannot be seen."""
    scan = _Scan(segment, None)
    batch = scan.whole_at(0)
    return segment.base_offset if batch is None else scan.in_place(batch).header.base_offset


class _Scan:
    def __init__(self, segment: SegmentFile, until: int | None) -> None:
        self._segment = segment
        self._until = until
        self._file = SourceFile(segment.path)
        self._position = 0
        self._offset = segment.base_offset

    def next_batch(self) -> Batch | None:
        """The next whole batch, wherever it is; None at the end."""
        if self._position + HEADER_BYTES > self._file.size:
            return None
        batch = self._batch_behind() or self._next_whole()
        if batch is not None:
            self._position = batch.position + len(batch.content)
            self._offset = batch.header.next_offset
        return batch

    def _batch_behind(self) -> Batch | None:
        """The batch right behind the last one. With a smaller offset, it belongs elsewhere."""
        batch = self.whole_at(self._position)
        if batch is None:
            return self._mended_here()
        batch = self.in_place(batch)
        return batch if self._is_plausible(batch) else None

    def in_place(self, batch: Batch) -> Batch:
        """The batch with its base offset mended, unless batches before it are missing."""
        if batch.header.base_offset == self._offset:
            return batch
        mended = self._mended(batch.content, batch.position)
        if mended is None:
            return batch
        here, there = mended.header.next_offset, batch.header.next_offset
        following = self.whole_at(batch.position + len(batch.content))
        for offset in (following.header.base_offset if following is not None else None, self._segment.end_offset):
            if offset in (here, there):
                return mended if offset == here else batch
        return mended if (self._offset ^ batch.header.base_offset).bit_count() == 1 else batch

    def _is_plausible(self, batch: Batch) -> bool:
        """Whether the batch may come next: no checksum covers its base offset, and a large one would end the log there."""
        base_offset, next_offset = batch.header.base_offset, batch.header.next_offset
        if base_offset <= self._offset or self._until is not None:
            return base_offset >= self._offset
        following = self.whole_at(batch.position + len(batch.content))
        if following is not None and following.header.base_offset == next_offset:
            return True
        if self._segment.end_offset is not None:
            return next_offset <= self._segment.end_offset
        return base_offset - self._offset <= MOST_OFFSETS_SKIPPED

    def _mended_here(self) -> Batch | None:
        """The damaged batch behind the last one, if only its header is damaged."""
        head = parse_header(self._file.read(self._position, HEADER_BYTES))
        ends = [min(self._position + head.size_bytes, self._file.size), self._segment.end_position]
        following = self._next_whole()
        ends += [following.position] if following is not None else self._possible_ends()
        for end in ends:
            if end is not None and end > self._position:
                mended = self._mended(self._file.read(self._position, end - self._position), self._position)
                if mended is not None:
                    return mended
        return None

    def _possible_ends(self) -> list[int | None]:
        """Where the last batch of a file may end."""
        size = self._file.size
        # Preallocated zeros follow; a batch may end in zeros, too.
        rest = self._file.read(max(self._position, size - WINDOW_BYTES), WINDOW_BYTES)
        used = size - len(rest) + len(rest.rstrip(b"\0"))
        return [size, *range(used, min(used + MOST_FINAL_ZEROS, size))]

    def whole_at(self, position: int) -> Batch | None:
        """The undamaged batch at a position, with any offset from here to the end."""
        head = self._file.read(position, HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            return None
        header = parse_header(head)
        if not may_be_batch(header, self._file.size - position) or header.base_offset < 0:
            return None
        content = self._file.read(position, header.size_bytes)
        return Batch(position, content, header) if check_crc(content, 0, header) and self._fits(header) else None

    def _fits(self, header: BatchHeader) -> bool:
        return self._until is None or header.next_offset <= self._until

    def _mended(self, content: bytes, position: int) -> Batch | None:
        """The bytes as the batch with the next offset, if its checksum agrees."""
        if not HEADER_BYTES <= len(content) < 2**31:
            return None
        fields = _UNCHECKED.pack(self._offset, len(content) - LOG_OVERHEAD_BYTES, LEADER_EPOCH, 2)
        whole = fields + content[_UNCHECKED.size :]
        header = parse_header(whole)
        is_whole = header.last_offset_delta >= 0 and check_crc(whole, 0, header) and self._fits(header)
        return Batch(position, whole, header) if is_whole else None

    def _next_whole(self) -> Batch | None:
        """The next whole batch behind a damaged one."""
        at = self._position + 1 + BATCH_MARK_AT
        while at < self._file.size:
            window = self._file.read(at, min(WINDOW_BYTES, self._file.size - at))
            found = window.find(BATCH_MARK)
            if found < 0:
                at += max(1, len(window) - len(BATCH_MARK) + 1)
                continue
            batch = self.whole_at(at + found - BATCH_MARK_AT)
            if batch is not None and self._is_plausible(batch):
                return batch
            at += found + 1
        return None
