"""The file commit-marker: the last acknowledged commit of the database, kept outside of it.

Two slots with a CRC are written in turn, so that a torn write leaves the older one. Every commit writes the marker; it
is synced about once a second and at a clean stop. After kill -9 it is exact, after a power cut at most a second old.
A marker ahead of the database is the evidence of lost commits that SQLite itself does not give.
"""

from __future__ import annotations

import os
import struct
import sys

import google_crc32c

from broker.light_named_tuples import NamedTuple
from broker.storage.files import Files, PinnedFile, guarded

NAME = "commit-marker"
NAME_BEFORE_FORMAT_4 = "watermark"

_crc = google_crc32c.value
_BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id"


class CommitMarker(NamedTuple):
    """The last acknowledged commit."""

    commit_seq: int
    chain: bytes
    synced: bool  # acknowledged after a sync (durability "power")
    boot_id: bytes  # of the machine when it was written; empty if unknown
    ends_epoch: int = 0  # of synced-ends when it was last synced; 0: that file has an older format
    checkpoint: int = 0  # the last WAL checkpoint that is known to have ended, see CheckedPages.stamp; 0: none


class CommitMarkerFile:
    """Two slots, the newer of which counts."""

    _SLOT = struct.Struct(">4sq16s?16sqII")
    _SLOT_BYTES = 64
    _MAGIC = b"kgm2"
    # Before format 5: without epoch and checkpoint.
    _OLD_SLOT = struct.Struct(">8sq16s?16sI")
    _OLD_MAGIC = b"kgctlwm1"

    def __init__(self, files: Files, directory: str) -> None:
        self.path = os.path.join(directory, NAME)
        self._old_path = os.path.join(directory, NAME_BEFORE_FORMAT_4)
        self._files = files
        self._file = PinnedFile(files, self.path)
        self._turn = 0

    def adopt_older(self) -> None:
        """Take over the marker of an older format. Its file is removed only once the copy is durable.

        Every step is synced with durability "process" too: the older format may have promised to survive a power cut.
        """
        if not os.path.exists(self._old_path):
            return
        directory = os.path.dirname(self.path)
        content = self._files.get(self._old_path).read(2 * self._SLOT_BYTES, 0)
        copy = self._file.get()
        copy.write(content, 0)
        copy.sync()
        guarded("sync directory", directory, self._files.ops.sync_directory, directory)
        self._files.unlink(self._old_path)
        # If the old file reappeared after a power cut, it would overwrite a newer marker.
        guarded("sync directory", directory, self._files.ops.sync_directory, directory)

    @property
    def is_damaged(self) -> bool:
        """The file has content, but no valid slot. Zeros are what a power cut may leave of a new file."""
        return bool(self._content().strip(b"\0")) and self.read() is None

    def _content(self) -> bytes:
        """Both slots, without creating the file."""
        for path in (self._old_path, self.path):
            if os.path.exists(path):
                content = self._files.get(path).read(2 * self._SLOT_BYTES, 0)
                self._files.forget(path)
                return content
        return b""

    def read(self) -> CommitMarker | None:
        """The newer slot; None if the file is missing or both are damaged."""
        content = self._content()
        newest: CommitMarker | None = None
        for turn in (0, 1):
            found = self._unpack(content[turn * self._SLOT_BYTES : (turn + 1) * self._SLOT_BYTES])
            if found is not None and (newest is None or _age(found) > _age(newest)):
                newest = found
                self._turn = 1 - turn
        return newest

    def _unpack(self, slot: bytes) -> CommitMarker | None:
        for layout, known in ((self._SLOT, self._MAGIC), (self._OLD_SLOT, self._OLD_MAGIC)):
            if len(slot) >= layout.size and slot.startswith(known):
                _, seq, chain, synced, boot_id, *newer, crc = layout.unpack_from(slot)
                if crc == _crc(slot[: layout.size - 4]):
                    return CommitMarker(seq, chain, synced, boot_id.rstrip(b"\0"), *newer)
        return None

    def write(self, marker: CommitMarker) -> None:
        body = self._SLOT.pack(self._MAGIC, *marker, 0)[:-4]
        self._file.get().write(body + struct.pack(">I", _crc(body)), self._turn * self._SLOT_BYTES)
        self._turn = 1 - self._turn

    def create(self, marker: CommitMarker) -> None:
        """Write the first marker, durably with durability "process" too: after a power cut it explains what is missing."""
        self.write(marker)
        directory = os.path.dirname(self.path)
        self.sync()
        guarded("sync directory", directory, self._files.ops.sync_directory, directory)

    def sync(self) -> None:
        self._file.get().sync()


def _age(marker: CommitMarker) -> tuple[int, int, int, bool]:
    return marker.commit_seq, marker.ends_epoch, marker.checkpoint, not marker.synced


def boot_id() -> bytes:
    """An id of this run of the operating system: a power cut changes it, kill -9 does not. Empty if unknown."""
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
