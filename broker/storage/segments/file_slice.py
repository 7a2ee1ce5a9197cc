"""A run of whole batches in a segment file, ready to be sent."""

from __future__ import annotations

from broker.storage.errors import DamageError
from broker.storage.files import OpenFile


class FileSlice:
    """Whole batches in a segment file, for sendfile. Holds the file open, even if the segment is deleted."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: OpenFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    @property
    def fileno(self) -> int:
        return self.file.fd

    def __len__(self) -> int:
        return self.length

    def tobytes(self) -> bytes:
        content = self.file.read(self.length, self.position)
        if len(content) != self.length:
            raise DamageError(f"{self.file.path} was cut to less than {self.position + self.length} bytes")
        return content
