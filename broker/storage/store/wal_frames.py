"""The frames of an SQLite WAL, read without SQLite.

The file format: https://www.sqlite.org/fileformat2.html#walformat
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Iterator

from broker.light_named_tuples import NamedTuple
from broker.storage.store.checked_pages import PAGE_BYTES

WAL_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
_FRAME = struct.Struct(">IIIIII")  # page number, size of the database after a commit, salts, checksums
_MASK = 0xFFFFFFFF


class Frame(NamedTuple):
    """One version of a page. `page_count`: of the database, if the frame ends a commit, else 0.

    `is_intact`: its checksum continues the one that the frame before it has.
    """

    position: int
    number: int
    page_count: int
    is_intact: bool

    @property
    def content_at(self) -> int:
        return self.position + FRAME_HEADER_BYTES


def frames(read: Callable[[int, int], bytes], size: int) -> Iterator[Frame]:
    """Yield the frames of the newest generation. `read` gets a position and a number of bytes.

    Salts are in the header and in each frame; a rewritten WAL leaves frames with older salts behind.
    """
    if size < WAL_HEADER_BYTES + FRAME_HEADER_BYTES:
        return
    header = read(0, WAL_HEADER_BYTES)
    big_endian = header[3] & 1 == 1
    salts = read(WAL_HEADER_BYTES + 8, 8)
    if _checksum(header[:24], (0, 0), big_endian) == struct.unpack(">II", header[24:]):
        salts = header[16:24]
    elif salts == bytes(8):
        return
    before = struct.unpack(">II", header[24:])
    for position in range(WAL_HEADER_BYTES, size, FRAME_HEADER_BYTES + PAGE_BYTES):
        if size - position < FRAME_HEADER_BYTES + PAGE_BYTES:
            return
        frame = read(position, FRAME_HEADER_BYTES)
        number, page_count, *_, first, second = _FRAME.unpack(frame)
        if frame[8:16] == salts:
            content = read(position + FRAME_HEADER_BYTES, PAGE_BYTES)
            found = _checksum(frame[:8] + content, before, big_endian)
            yield Frame(position, number, page_count, found == (first, second))
        before = (first, second)


def _checksum(content: bytes, before: tuple[int, int], big_endian: bool) -> tuple[int, int]:
    """SQLite's checksum of a WAL, continued from the one before."""
    words = array("I", content)
    if big_endian != (sys.byteorder == "big"):
        words.byteswap()
    first, second = before
    for at in range(0, len(words), 2):
        first = (first + words[at] + second) & _MASK
        second = (second + words[at + 1] + first) & _MASK
    return first, second
