"""The file synced-ends before format 5: pairs of slots of 32 bytes without a head."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Protocol

import google_crc32c

from broker.storage.segments.synced_ends import SyncedEnd

_SLOT = struct.Struct(">IqqqI")
_crc = google_crc32c.value


class Owner(Protocol):
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partition(self) -> int: ...


def read_old_ends(content: bytes, owners: Mapping[int, Owner]) -> dict[int, SyncedEnd]:
    """The newer slot of each partition. A missing one is no evidence: the first commit of a partition preceded it."""
    ends: dict[int, SyncedEnd] = {}
    for number, owner in owners.items():
        for turn in (0, 1):
            at = (2 * number + turn) * _SLOT.size
            slot = content[at : at + _SLOT.size]
            if len(slot) < _SLOT.size:
                continue
            found, base_offset, position, end_offset, crc = _SLOT.unpack(slot)
            known = ends.get(number)
            if found == number and crc == _crc(slot[:-4]) and (known is None or end_offset > known.end_offset):
                ends[number] = SyncedEnd(owner.topic_id, owner.partition, base_offset, position, end_offset)
    return ends
