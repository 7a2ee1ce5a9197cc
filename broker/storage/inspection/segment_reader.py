"""Reads batches of one segment file, with checked CRCs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from broker.protocol.record_batch import HEADER_BYTES, parse_header
from broker.storage.errors import DamageError, StorageError
from broker.storage.segments.verification import SCAN_BYTES, StoredBatch, checked_batches, may_be_batch


class SegmentReader:
    """An open file. DamageError: it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise DamageError(f"{path} is missing") from None
        except OSError as error:
            raise StorageError(f"cannot open {path}: {error.strerror}") from error
        self.size = os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)

    def read(self, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        try:
            content = os.pread(self._fd, size, position)
            while len(content) < size and (more := os.pread(self._fd, size - len(content), position + len(content))):
                content += more
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from error
        return content

    def batches(self, offset: int, start: int, end: int, *, until_damage: bool = False) -> Iterator[StoredBatch]:
        """Yield the batches from `start`, whose base offset is `offset`, to `end`; DamageError at the first bad one.

        With `until_damage`, `end` is where the file ends, and bytes that are no batch may come before it.
        """
        if until_damage:
            position = start
            while position + HEADER_BYTES <= end:
                header = parse_header(self.read(HEADER_BYTES, position))
                if header.base_offset != offset or not may_be_batch(header, end - position):
                    return
                yield from checked_batches(
                    self.read, self.damage, offset, position, position + header.size_bytes, SCAN_BYTES
                )
                position += header.size_bytes
                offset = header.next_offset
            return
        yield from checked_batches(self.read, self.damage, offset, start, end, SCAN_BYTES)

    def damage(self, position: int) -> DamageError:
        if self.size < position + HEADER_BYTES:
            return DamageError(f"{self.path} is truncated: it has {self.size} bytes")
        return DamageError(f"{self.path} is damaged: the batch at position {position} does not match what was written")
