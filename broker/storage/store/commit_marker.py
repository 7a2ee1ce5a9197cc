"""Small files beside the database that say how far acknowledged commits and segment bytes reach.

Both consist of slots with a CRC; each value has two slots that are written in turn, so that a torn write
leaves the older one. They are written in every round and synced at least once a second and at a clean stop:
after kill -9 they are exact, after a power cut at most a second old. A value that claims more than the store
holds is the evidence of damage that SQLite and a torn tail cannot give.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import NamedTuple

import google_crc32c

from broker.storage.files import Files, PinnedFile

_crc = google_crc32c.value
_BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id"


class Watermark(NamedTuple):
    """The last acknowledged commit of the database."""

    commit_seq: int
    chain: bytes
    synced: bool  # it was acknowledged after a sync (durability "power")
    boot_id: bytes  # of the machine when it was written; empty if unknown


class WatermarkFile:
    """Two slots of one Watermark."""

    _SLOT = struct.Struct(">8sq16s?16sI")
    _SLOT_BYTES = 64
    _MAGIC = b"kgctlwm1"

    def __init__(self, files: Files, path: str) -> None:
        self.path = path
        self.exists = os.path.exists(path)
        self._file = PinnedFile(files, path)
        self._turn = 0

    def read(self) -> Watermark | None:
        content = self._file.get().read(2 * self._SLOT_BYTES, 0)
        newest: Watermark | None = None
        for turn in (0, 1):
            slot = content[turn * self._SLOT_BYTES : turn * self._SLOT_BYTES + self._SLOT.size]
            if len(slot) < self._SLOT.size:
                continue
            magic, seq, chain, synced, boot_id, crc = self._SLOT.unpack(slot)
            if magic != self._MAGIC or crc != _crc(slot[:-4]):
                continue
            if newest is None or seq > newest.commit_seq:
                newest = Watermark(seq, chain, synced, boot_id.rstrip(b"\0"))
                self._turn = 1 - turn
        return newest

    def write(self, mark: Watermark) -> None:
        body = self._SLOT.pack(self._MAGIC, mark.commit_seq, mark.chain, mark.synced, mark.boot_id, 0)[:-4]
        self._file.get().write(body + struct.pack(">I", _crc(body)), self._turn * self._SLOT_BYTES)
        self._turn = 1 - self._turn

    def sync(self) -> None:
        self._file.get().sync()


def boot_id() -> bytes:
    """A name of this run of the operating system: a power cut changes it, kill -9 does not. Empty if unknown."""
    try:
        if sys.platform == "linux":
            with open(_BOOT_ID_PATH, "rb") as file:
                text = file.read()
        elif sys.platform == "darwin":
            text = _darwin_boot_session()
        else:
            return b""
        return bytes.fromhex(text.strip(b"\0\n ").replace(b"-", b"").decode("ascii"))[:16]
    except (OSError, ValueError):
        return b""


def _darwin_boot_session() -> bytes:
    import ctypes

    buffer = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(64)
    if ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, 0) != 0:
        return b""
    return buffer.value
