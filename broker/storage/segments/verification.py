"""CRC checks of stored batches, on the very bytes that are used.

A batch is checked each time it is read: what this run wrote or checked earlier may have changed since.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import google_crc32c

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, BatchHeader, parse_header
from broker.storage.errors import DamageError
from broker.storage.files import OpenFile
from broker.storage.partition_log import LEADER_EPOCH

SCAN_BYTES = 1 << 20
PIECE_BYTES = 120 << 10  # allocations of this size are cheap, and larger batches need no memory of their size

# (size, position): up to that number of bytes; fewer only at the end of the file.
Read = Callable[[int, int], bytes]
# The error for a damaged batch at this position.
Damage = Callable[[int], DamageError]

_crc = google_crc32c.value
_crc_extend = google_crc32c.extend
_FIELDS = struct.Struct(">qiiBI2xi")  # base offset, length, leader epoch, magic, CRC, last offset delta
_CHECKED_FROM = 21
_MAGIC = 2


# Every batch has these bytes at the same place: the leader epoch and the magic.
BATCH_MARK = LEADER_EPOCH.to_bytes(4, "big") + _MAGIC.to_bytes(1, "big")
BATCH_MARK_AT = 12


class StoredBatch(NamedTuple):
    """One batch of a segment file with a correct checksum."""

    position: int
    header: BatchHeader
    content: bytes


def may_be_batch(header: BatchHeader, room: int) -> bool:
    """Whether a batch of a segment file, of at most `room` bytes, may begin so. Its checksum is another question."""
    return (
        header.magic == _MAGIC
        and header.partition_leader_epoch == LEADER_EPOCH
        and header.last_offset_delta >= 0
        and HEADER_BYTES <= header.size_bytes <= room
    )


def checked_batches(
    read: Read, damage: Damage, offset: int, start: int, end: int, chunk_bytes: int
) -> Iterator[StoredBatch]:
    """Yield the batches from `start`, whose base offset is `offset`, to `end`; raise `damage` at the first bad one."""
    for position, chunk, at, size in _checked(read, damage, offset, start, end, chunk_bytes, keep=True):
        yield StoredBatch(position, parse_header(chunk, at), chunk[at : at + size])


def checked_end(
    read: Read, damage: Damage, offset: int, start: int, limit: int, most: int | None = None
) -> tuple[int, int, bool]:
    """Where the whole, undamaged batches from `start` on end, at most at `limit`, and whether `most` batches end there.

    The end is a position and an offset.

    Raise `damage` if the first is bad.
    """
    end, count = start, 0
    last, last_at = b"", 0
    try:
        for position, chunk, at, size in _checked(read, damage, offset, start, limit, PIECE_BYTES):
            end = position + size
            last, last_at = chunk, at
            count += 1
            if count == most:
                break
    except DamageError:
        # It is reported when it is the first: readers get what lies before it.
        if end == start:
            raise
    base_offset, *_, last_delta = _FIELDS.unpack_from(last, last_at)
    return end, base_offset + last_delta + 1, count == most


def check_again(damage: Damage, offset: int, start: int, end: int, file: OpenFile) -> None:
    """Raise `damage` unless all batches from `start` to `end` are whole."""
    for _ in _checked(file.read, damage, offset, start, end, PIECE_BYTES):
        pass


def _checked(
    read: Read, damage: Damage, offset: int, position: int, end: int, chunk_bytes: int, *, keep: bool = False
) -> Iterator[tuple[int, bytes, int, int]]:
    """Yield (position, chunk, place in the chunk, size) of each batch. `keep`: the chunk has all of it."""
    while position < end:
        chunk = read(min(chunk_bytes, end - position), position)
        at = 0
        while at + HEADER_BYTES <= len(chunk):
            base_offset, length, epoch, magic, crc, last_delta = _FIELDS.unpack_from(chunk, at)
            size = length + LOG_OVERHEAD_BYTES
            if (
                base_offset != offset
                or epoch != LEADER_EPOCH
                or magic != _MAGIC
                or last_delta < 0
                or not HEADER_BYTES <= size <= end - position - at
            ):
                raise damage(position + at)
            if at + size > len(chunk):
                if at:
                    break
                if keep:
                    chunk = read(size, position)
            # A chunk that ends early, as the file was cut, fails as well.
            found = _crc(chunk[at + _CHECKED_FROM : at + size])
            if at + size > len(chunk):
                found = _extended(found, read, position + len(chunk), position + size)
            if crc != found:
                raise damage(position + at)
            yield position + at, chunk, at, size
            at += size
            offset += last_delta + 1
        if at == 0:
            raise damage(position)
        position += at


def _extended(crc: int, read: Read, position: int, end: int) -> int:
    """The CRC continued over a part of a file, in pieces: memory for a large batch would cost more than its CRC."""
    while position < end:
        piece = read(min(PIECE_BYTES, end - position), position)
        if not piece:
            return -1
        crc = _crc_extend(crc, piece)
        position += len(piece)
    return crc
