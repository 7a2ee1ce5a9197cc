"""CRC checks of stored batches. Bytes that this run did not write are checked once, before they are first served."""

from __future__ import annotations

from collections.abc import Callable

from broker.protocol.record_batch import HEADER_BYTES, BatchHeader, check_crc, parse_header
from broker.storage.errors import DamageError
from broker.storage.files import OpenFile
from broker.storage.partition_log import LEADER_EPOCH

SCAN_BYTES = 1 << 20


class VerifiedRanges:
    """The positions of a segment file whose batches are known to be good: disjoint, ascending ranges."""

    __slots__ = ("ranges",)

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> None:
        ranges = self.ranges
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
            return
        merged: list[tuple[int, int]] = []
        for low, high in ranges:
            if high < start or low > end:
                merged.append((low, high))
            else:
                start, end = min(start, low), max(end, high)
        merged.append((start, end))
        merged.sort()
        self.ranges = merged


def verify_batches(file: OpenFile, offset: int, start: int, end: int, damage: Callable[[int], DamageError]) -> None:
    """Check the batches from position `start`, whose base offset is `offset`, to `end`; raise `damage(position)`."""
    position = start
    while position < end:
        chunk = file.read(min(SCAN_BYTES, end - position), position)
        at = 0
        while at + HEADER_BYTES <= len(chunk):
            header = _plausible(chunk, at, offset, position + at, end, damage)
            if at + header.size_bytes > len(chunk):
                break
            if not check_crc(chunk, at, header):
                raise damage(position + at)
            at += header.size_bytes
            offset = header.next_offset
        if at == 0:
            header = _verify_large(file, offset, position, end, damage)
            at = header.size_bytes
            offset = header.next_offset
        position += at


def _plausible(
    chunk: bytes, at: int, offset: int, position: int, end: int, damage: Callable[[int], DamageError]
) -> BatchHeader:
    """The header, if the fields that the CRC does not cover are as they were written."""
    header = parse_header(chunk, at)
    if (
        header.base_offset != offset
        or header.magic != 2
        or header.partition_leader_epoch != LEADER_EPOCH
        or not HEADER_BYTES <= header.size_bytes <= end - position
    ):
        raise damage(position)
    return header


def _verify_large(
    file: OpenFile, offset: int, position: int, end: int, damage: Callable[[int], DamageError]
) -> BatchHeader:
    """Check one batch that is larger than a chunk."""
    head = file.read(HEADER_BYTES, position)
    if len(head) < HEADER_BYTES:
        raise damage(position)
    header = _plausible(head, 0, offset, position, end, damage)
    batch = file.read(header.size_bytes, position)
    if len(batch) != header.size_bytes or not check_crc(batch, 0, header):
        raise damage(position)
    return header
