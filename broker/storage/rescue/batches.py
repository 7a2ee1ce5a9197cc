"""Whole batches of a segment file, whatever lies between them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from broker.protocol.record_batch import HEADER_BYTES, BatchHeader, check_crc, parse_header
from broker.protocol.wire_types import DecodeError
from broker.storage.partition_log import LEADER_EPOCH
from broker.storage.rescue.reading import WINDOW_BYTES, SourceFile

# Every batch has these bytes at the same place: the leader epoch and the magic.
_MARK = LEADER_EPOCH.to_bytes(4, "big") + b"\x02"
_MARK_AT = 12
MOST_FINAL_ZEROS = 9
_LENGTH_OVERHEAD = 12
_UNCHECKED = struct.Struct(">qiib")  # the fields that the checksum of a batch does not cover


class Batch(NamedTuple):
    content: bytes
    header: BatchHeader


class SegmentFile(NamedTuple):
    path: Path
    base_offset: int
    revision: int


def segment_file(path: Path) -> SegmentFile | None:
    """The base offset and revision in the name of a segment file; None for another file."""
    match path.name.split("."):
        case [base, "log"] if base.isdigit():
            return SegmentFile(path, int(base), 0)
        case [base, revision, "log"] if base.isdigit() and revision.isdigit():
            return SegmentFile(path, int(base), int(revision))
    return None


def whole_batches(segment: SegmentFile, until: int | None, ends: Sequence[int] = ()) -> Iterator[Batch]:
    """Yield the undamaged batches below the offset `until`. `ends` are positions where a batch is known to end.

    Batches follow each other without a gap, in the file and in offsets. So a batch whose header is damaged where its
    checksum does not reach (base offset, length, leader epoch, magic) gets these fields back.
    """
    file = SourceFile(segment.path)
    position, offset = 0, segment.base_offset
    while position + HEADER_BYTES <= file.size:
        batch = _batch_at(file, position, offset, until, follows=True)
        following = position
        if batch is None:
            following = _next_batch(file, position, offset, until)
            stops = [_end_in_header(file, position), following, *ends]
            if following < 0:
                stops += _possible_ends(file, position)
            mended = (_mended(file.read(position, end - position), offset, until) for end in stops if end > position)
            batch = next((found for found in mended if found is not None), None)
            if batch is None:
                if following < 0:
                    return
                batch = _batch_at(file, following, offset, until, follows=False)
                assert batch is not None
            else:
                following = position
        yield batch
        offset = batch.header.next_offset
        position = following + len(batch.content)


def _batch_at(file: SourceFile, position: int, offset: int, until: int | None, *, follows: bool) -> Batch | None:
    """The batch at a position; `follows`: right behind the batch before it, so that its base offset is known."""
    head = file.read(position, HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        return None
    header = parse_header(head)
    size = header.size_bytes
    if (
        header.magic != 2
        or header.partition_leader_epoch != LEADER_EPOCH
        or not HEADER_BYTES <= size <= file.size - position
        or header.last_offset_delta < 0
        or (not follows and header.base_offset < offset)
    ):
        return None
    content = file.read(position, size)
    if not check_crc(content, 0, header):
        return None
    if follows and header.base_offset != offset:
        return _mended(content, offset, until)
    return Batch(content, header) if until is None or header.next_offset <= until else None


def _mended(content: bytes, offset: int, until: int | None) -> Batch | None:
    """The bytes as a batch with this base offset, if its checksum agrees."""
    if len(content) < HEADER_BYTES or len(content) > 2**31:
        return None
    fields = _UNCHECKED.pack(offset, len(content) - _LENGTH_OVERHEAD, LEADER_EPOCH, 2)
    whole = fields + content[_UNCHECKED.size :]
    try:
        header = parse_header(whole)
    except DecodeError:
        return None
    if header.last_offset_delta < 0 or not check_crc(whole, 0, header):
        return None
    return Batch(whole, header) if until is None or header.next_offset <= until else None


def _end_in_header(file: SourceFile, position: int) -> int:
    return min(position + parse_header(file.read(position, HEADER_BYTES)).size_bytes, file.size)


def _possible_ends(file: SourceFile, position: int) -> Iterator[int]:
    """Where the last batch of a file may end."""
    yield file.size
    # Preallocated zeros follow; a batch may end in zeros, too.
    rest = file.read(max(position, file.size - WINDOW_BYTES), WINDOW_BYTES)
    used = file.size - len(rest) + len(rest.rstrip(b"\0"))
    yield from range(used, min(used + MOST_FINAL_ZEROS, file.size))


def _next_batch(file: SourceFile, position: int, offset: int, until: int | None) -> int:
    """The position of the next whole batch behind a damaged one; -1 if there is none."""
    at = position + 1 + _MARK_AT
    while at < file.size:
        window = file.read(at, min(WINDOW_BYTES, file.size - at))
        found = window.find(_MARK)
        if found < 0:
            at += max(1, len(window) - len(_MARK) + 1)
            continue
        start = at + found - _MARK_AT
        if _batch_at(file, start, offset, until, follows=False) is not None:
            return start
        at += found + 1
    return -1
