"""System calls on stored files of which none can change a file."""

from __future__ import annotations

import errno
import os
from typing import NoReturn

from broker.storage.file_ops import Buffer, FileOps
from broker.storage.files import Files

_WRITING = os.O_RDWR | os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_TRUNC


class ReadOnlyOps(FileOps):
    """Opens every file for reading only, and refuses all changes."""

    def open(self, path: str, flags: int) -> int:
        return super().open(path, flags & ~_WRITING)

    def pwrite(self, fd: int, content: Buffer, position: int) -> int:
        _refuse()

    def truncate(self, fd: int, size: int) -> None:
        _refuse()

    def mkdir(self, path: str) -> None:
        _refuse()

    def unlink(self, path: str) -> None:
        _refuse()

    def rmdir(self, path: str) -> None:
        _refuse()

    def rename(self, path: str, new_path: str) -> None:
        _refuse()


def read_only_files() -> Files:
    return Files(ReadOnlyOps())


def _refuse() -> NoReturn:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))
