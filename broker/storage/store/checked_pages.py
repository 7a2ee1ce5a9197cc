"""An SQLite VFS that adds a CRC to every page of the database file and checks it when the page is read.

SQLite itself does not notice a flipped bit in a page: it returns wrong rows, or none. Each page ends in eight
reserved bytes (page number, CRC-32C of everything before), set when a checkpoint writes the page. Any SQLite can
read such a file. The WAL has its own checksums and passes unchanged.
"""

from __future__ import annotations

import os
import struct
from typing import NoReturn

import apsw
import google_crc32c

from broker.storage.errors import ReplacedError, StorageError, StoreDamageError
from broker.storage.file_ops import FileOps

PAGE_BYTES = 4096
HEADER_BYTES = 100  # SQLite reads these first
RESERVED_BYTES = 8
# SQLite locks its bytes, and never writes it.
LOCKED_PAGE = (1 << 30) // PAGE_BYTES + 1
_BODY_BYTES = PAGE_BYTES - 4
_NUMBER = struct.Struct(">I")
_STAMP_AT = 72  # reserved for expansion in the header of every SQLite database
_crc = google_crc32c.value


def page_is_intact(content: bytes, number: int) -> bool:
    """Whether the bytes are the page with this number as a checkpoint wrote it, or the one that is never written."""
    return number == LOCKED_PAGE or (
        len(content) == PAGE_BYTES
        and _NUMBER.unpack_from(content, _BODY_BYTES)[0] == _crc(content[:_BODY_BYTES])
        and _NUMBER.unpack_from(content, _BODY_BYTES - 4)[0] == number
    )


def stamp_in(header: bytes) -> int:
    """The stamp of the last checkpoint that wrote the first page; 0 in files of older formats."""
    return int.from_bytes(header[_STAMP_AT : _STAMP_AT + _NUMBER.size], "big")


class _CheckedFile(apsw.VFSFile):
    def __init__(self, vfs: CheckedPages, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        super().__init__(vfs.base, name, flags)
        self._vfs = vfs
        self._path = name if isinstance(name, str) else name.filename() if name is not None else ""

    def xRead(self, amount: int, offset: int) -> bytes:
        content = super().xRead(amount, offset)
        if amount == PAGE_BYTES and content:
            self._check(content, offset)
        elif amount == HEADER_BYTES and offset == 0 and content:
            self._check_header(content)
        return content

    def stamp(self) -> int:
        """The stamp that the file has now; one that was replaced in place has another."""
        return stamp_in(super().xRead(HEADER_BYTES, 0))

    def _check_header(self, content: bytes) -> None:
        if len(content) < HEADER_BYTES or content[:16] != b"SQLite format 3\0" or content[20] != RESERVED_BYTES:
            self._fail(f"{self._path} is not a store of this broker, or its first page is damaged")

    def _check(self, content: bytes, offset: int) -> None:
        number = offset // PAGE_BYTES + 1
        if page_is_intact(content, number):
            return
        name = os.path.basename(self._path)
        self._fail(
            f"{self._path}: page {number} of {name} (bytes {offset} to {offset + PAGE_BYTES}) fails its checksum"
        )

    def _fail(self, message: str) -> NoReturn:
        self._vfs.failure = StoreDamageError(message)
        raise apsw.IOError(message)

    def xWrite(self, content: bytes, offset: int) -> None:
        if len(content) == PAGE_BYTES:
            if offset == 0 and self._vfs.stamp:
                content = content[:_STAMP_AT] + _NUMBER.pack(self._vfs.stamp) + content[_STAMP_AT + _NUMBER.size :]
            body = content[: _BODY_BYTES - 4] + _NUMBER.pack(offset // PAGE_BYTES + 1)
            content = body + _NUMBER.pack(_crc(body))
        super().xWrite(content, offset)


class CheckedPages(apsw.VFS):
    """One per store, registered with SQLite until `unregister`."""

    failure: StorageError | None = None  # the first page that failed, or the loss of the directory
    stamp = 0  # the first page gets it when a checkpoint writes it
    main: _CheckedFile  # the database file

    def __init__(self, ops: FileOps) -> None:
        self.base = base = ops.sqlite_vfs
        self._ops = ops
        self.vfs_name = f"kgctl-{id(self):x}"
        super().__init__(self.vfs_name, base)

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:
        file = self._open(name, flags)
        # SQLite opens by path: after the open, so that nothing is written to a file of another directory.
        self._check_directory()
        return file

    def xFullPathname(self, name: str) -> str:
        # SQLite's own reports a link in the path with a result code that apsw takes for an error.
        return os.path.realpath(name)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self._check_directory()
        super().xDelete(filename, syncdir)

    def _check_directory(self) -> None:
        try:
            self._ops.check_directory()
        except ReplacedError as error:
            self.failure = error
            raise apsw.IOError(str(error)) from error

    def _open(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            self.main = _CheckedFile(self, name, flags)
            return self.main
        return apsw.VFSFile(self.base, name, flags)
