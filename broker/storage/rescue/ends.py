"""The acknowledged ends of all partitions, from the file synced-ends."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import google_crc32c

from broker.storage.rescue.reading import SourceFile
from broker.storage.rescue.salvage import StoredPartition

_SLOT = struct.Struct(">IqqqI")
_SLOT_BYTES, _PAIR_BYTES = 32, 64
_crc = google_crc32c.value


class AcknowledgedEnd(NamedTuple):
    """The segment that was active, the position where its acknowledged bytes end, and the next offset."""

    base_offset: int
    position: int
    end_offset: int


class AcknowledgedEnds(NamedTuple):
    """By (topic id, partition). `unassigned` ends belong to partitions that the store no longer names."""

    ends: dict[tuple[bytes, int], AcknowledgedEnd]
    unassigned: int


def read_acknowledged_ends(path: Path, partitions: Mapping[int, StoredPartition]) -> AcknowledgedEnds:
    """Read both slots of each partition number, and keep the larger valid one."""
    found: dict[tuple[bytes, int], AcknowledgedEnd] = {}
    unassigned = 0
    if not path.exists():
        return AcknowledgedEnds(found, 0)
    file = SourceFile(path)
    for number in range(1, -(-file.size // _PAIR_BYTES)):
        end = _newest(file.read(number * _PAIR_BYTES, _PAIR_BYTES), number)
        partition = partitions.get(number)
        if end is not None and partition is not None:
            found[partition.topic_id, partition.partition] = end
        elif end is not None:
            unassigned += 1
    return AcknowledgedEnds(found, unassigned)


def _newest(pair: bytes, number: int) -> AcknowledgedEnd | None:
    newest: AcknowledgedEnd | None = None
    for at in (0, _SLOT_BYTES):
        slot = pair[at : at + _SLOT_BYTES]
        if len(slot) < _SLOT_BYTES:
            continue
        stored, base_offset, position, end_offset, crc = _SLOT.unpack(slot)
        if stored != number or crc != _crc(slot[:-4]):
            continue
        if newest is None or end_offset > newest.end_offset:
            newest = AcknowledgedEnd(base_offset, position, end_offset)
    return newest
