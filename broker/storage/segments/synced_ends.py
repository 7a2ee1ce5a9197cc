"""The file synced-ends: where the acknowledged bytes of each partition end.

Each partition has two slots with a CRC, written in turn, so that a torn write leaves the older one. Every flush
writes them; they are synced about once a second and at a clean stop. After kill -9 they are exact, after a power cut
at most a second old. An end beyond what a segment holds is evidence of damage that a torn tail alone is not.
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

import google_crc32c

from broker.storage.files import Files, PinnedFile

_crc = google_crc32c.value


class SyncedEnd(NamedTuple):
    """Where the acknowledged bytes of one partition end: a segment, a position in it, the next offset."""

    base_offset: int
    position: int
    end_offset: int


class SyncedEnds:
    """Two slots per partition, at a position given by the partition's number in the store."""

    _SLOT = struct.Struct(">IqqqI")
    _SLOT_BYTES = 32
    _PAIR_BYTES = 64

    def __init__(self, files: Files, path: str) -> None:
        self.path = path
        self.exists = os.path.exists(path)
        self._file = PinnedFile(files, path)
        self._turns: dict[int, int] = {}

    def read(self, partition_id: int) -> SyncedEnd | None:
        content = self._file.get().read(self._PAIR_BYTES, partition_id * self._PAIR_BYTES)
        newest: SyncedEnd | None = None
        for turn in (0, 1):
            slot = content[turn * self._SLOT_BYTES : (turn + 1) * self._SLOT_BYTES]
            if len(slot) < self._SLOT_BYTES:
                continue
            number, base_offset, position, end_offset, crc = self._SLOT.unpack(slot)
            if number != partition_id or crc != _crc(slot[:-4]):
                continue
            if newest is None or end_offset > newest.end_offset:
                newest = SyncedEnd(base_offset, position, end_offset)
                self._turns[partition_id] = 1 - turn
        return newest

    def write(self, partition_id: int, end: SyncedEnd) -> None:
        turn = self._turns.get(partition_id, 0)
        body = self._SLOT.pack(partition_id, end.base_offset, end.position, end.end_offset, 0)[:-4]
        position = partition_id * self._PAIR_BYTES + turn * self._SLOT_BYTES
        self._file.get().write(body + struct.pack(">I", _crc(body)), position)
        self._turns[partition_id] = 1 - turn

    def sync(self) -> None:
        self._file.get().sync()
