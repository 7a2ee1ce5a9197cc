"""A sparse index of one segment: offset, position and preceding max timestamp of a batch every few kilobytes.

One array serves all look-ups. The index file is a cache: it consists of chunks with a CRC each, which
covers the identity of the segment. Missing, damaged and foreign ones are rebuilt from the segment.
"""

from __future__ import annotations

import struct
import sys
from array import array

import google_crc32c

_crc_extend = google_crc32c.extend
_CHUNK_HEAD = struct.Struct(">4sII")
_MAGIC = b"kix1"
_FIELDS = 3
_ENTRY_BYTES = 8 * _FIELDS


class Index:
    """Entries (offset, position, max timestamp of all batches before that position), ascending."""

    __slots__ = ("_entries", "_id_crc", "_saved", "_wanted_position", "interval_bytes")

    def __init__(self, interval_bytes: int, id_crc: int) -> None:
        self.interval_bytes = interval_bytes
        self._id_crc = id_crc  # of the segment: chunks of another one do not fit
        self._entries = array("q")
        self._saved = 0  # how many values of _entries the file holds
        self._wanted_position = 0

    def __len__(self) -> int:
        return len(self._entries) // _FIELDS

    def add(self, offset: int, position: int, max_timestamp_before: int) -> None:
        """Add an entry for a batch that is far enough from the last one."""
        if position >= self._wanted_position:
            self._entries.extend((offset, position, max_timestamp_before))
            self._wanted_position = position + self.interval_bytes

    def at_offset(self, offset: int) -> tuple[int, int] | None:
        """(base offset, position) of the batch to walk from to the one with `offset`."""
        return self._last_before(0, offset + 1)

    def at_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        """(base offset, position) of the batch to walk from to the first one with a timestamp >= `timestamp`."""
        return self._last_before(2, timestamp)

    def _last_before(self, field: int, bound: int) -> tuple[int, int] | None:
        """The last entry with this field below `bound`."""
        entries = self._entries
        low, high = 0, len(entries) // _FIELDS
        while low < high:
            middle = (low + high) >> 1
            if entries[middle * _FIELDS + field] < bound:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return None
        at = (low - 1) * _FIELDS
        return entries[at], entries[at + 1]

    @property
    def last(self) -> tuple[int, int, int] | None:
        if not self._entries:
            return None
        offset, position, timestamp = self._entries[-_FIELDS:]
        return offset, position, timestamp

    # -- on disk

    @property
    def has_unsaved(self) -> bool:
        return self._saved < len(self._entries)

    def unsaved_chunk(self) -> bytes:
        """The entries that are not in the file, as one chunk to append; empty if there are none."""
        fresh = self._entries[self._saved :]
        self._saved = len(self._entries)
        return self._chunk(fresh)

    def _chunk(self, entries: array[int]) -> bytes:
        if not entries:
            return b""
        if sys.byteorder == "big":
            entries = array("q", entries)
            entries.byteswap()
        body = entries.tobytes()
        return _CHUNK_HEAD.pack(_MAGIC, len(entries) // _FIELDS, _crc_extend(self._id_crc, body)) + body

    @classmethod
    def load(
        cls, content: bytes, interval_bytes: int, id_crc: int, end_position: int, base_offset: int
    ) -> tuple[Index, int]:
        """Read chunks up to the first damaged or implausible one. Return the index and the number of good bytes."""
        index = cls(interval_bytes, id_crc)
        at = 0
        while at + _CHUNK_HEAD.size <= len(content):
            magic, count, crc = _CHUNK_HEAD.unpack_from(content, at)
            body = content[at + _CHUNK_HEAD.size : at + _CHUNK_HEAD.size + count * _ENTRY_BYTES]
            if magic != _MAGIC or len(body) != count * _ENTRY_BYTES or crc != _crc_extend(id_crc, body):
                break
            chunk = array("q", body)
            if sys.byteorder == "big":
                chunk.byteswap()
            last = index.last
            if not chunk or chunk[-2] >= end_position or chunk[0] < (last[0] if last else base_offset):
                break
            index._entries.extend(chunk)
            at += _CHUNK_HEAD.size + len(body)
        index._saved = len(index._entries)
        last = index.last
        if last is not None:
            index._wanted_position = last[1] + interval_bytes
        return index, at
