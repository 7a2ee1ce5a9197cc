"""Reads a file that may lie on a failing disk: bytes that cannot be read count as zeros."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

WINDOW_BYTES = 1 << 20
REPORT_SECONDS = 5.0
_SECTOR = 4096


class Progress:
    """Counts the bytes of segment files that were read, and reports the sum now and then."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report = report
        self._bytes = 0
        self._reported_at = time.monotonic()

    def add(self, size: int) -> None:
        self._bytes += size
        if time.monotonic() - self._reported_at >= REPORT_SECONDS:
            self._reported_at = time.monotonic()
            self._report(self._bytes)


class SourceFile:
    """A file of the damaged directory, opened for reading only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size
        self.unreadable_bytes = 0
        self._window = b""
        self._start = 0

    def __del__(self) -> None:
        os.close(self._fd)

    def read(self, position: int, size: int) -> bytes:
        """The bytes, fewer at the end of the file."""
        at = position - self._start
        if at < 0 or at + size > len(self._window):
            self._start = position
            self._window = self._load(position, max(size, min(WINDOW_BYTES, self.size - position)))
            at = 0
        return self._window[at : at + size]

    def _load(self, position: int, size: int) -> bytes:
        pieces = []
        end = min(position + size, self.size)
        while position < end:
            try:
                piece = os.pread(self._fd, end - position, position)
            except OSError:
                piece = self._load_sectors(position, end)
            if not piece:
                break
            pieces.append(piece)
            position += len(piece)
        return b"".join(pieces)

    def _load_sectors(self, position: int, end: int) -> bytes:
        pieces = []
        while position < end:
            size = min(_SECTOR - position % _SECTOR, end - position)
            try:
                piece = os.pread(self._fd, size, position).ljust(size, b"\0")
            except OSError:
                piece = bytes(size)
                self.unreadable_bytes += size
            pieces.append(piece)
            position += size
        return b"".join(pieces)
