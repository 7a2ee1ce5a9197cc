"""The system calls on stored files, which tests can replace. With a held directory, none reaches outside of it."""

from __future__ import annotations

import fcntl
import os
import sys
from typing import Protocol

from broker.storage.errors import ReplacedError

Buffer = bytes | bytearray | memoryview

_F_FULLFSYNC = getattr(fcntl, "F_FULLFSYNC", None) if sys.platform == "darwin" else None


class HeldDirectory(Protocol):
    """A data directory that this process has locked and keeps open."""

    @property
    def path(self) -> str: ...

    @property
    def descriptor(self) -> int: ...

    def lost(self) -> str | None:
        """Why the path no longer leads to this directory and its lock; None while it does."""


class FileOps:
    """Every system call that changes or reads a stored file. Fault tests pass their own.

    Paths below a held directory are resolved from its descriptor. So if another directory takes its place, not even a
    call between two checks touches the files of the other.
    """

    boot_id: bytes | None = None  # of the operating system; None: its own
    sqlite_vfs: str = ""  # name of the SQLite VFS below ours; "" is the platform's own
    directory: HeldDirectory | None = None
    syncs_at_once = 8  # in threads; 1: in the order of the flush

    def check_directory(self) -> None:
        """Raise ReplacedError if the held directory was removed or replaced."""
        lost = self.directory.lost() if self.directory is not None else None
        if lost is not None:
            raise ReplacedError(lost)

    def _resolve(self, path: str) -> tuple[str, int | None]:
        """A name and the descriptor of the directory that it is relative to."""
        held = self.directory
        if held is None:
            return path, None
        root = held.path
        if path.startswith(root) and path[len(root) : len(root) + 1] == os.sep:
            return path[len(root) + 1 :], held.descriptor
        return ("." if path == root else path), held.descriptor

    def open(self, path: str, flags: int) -> int:
        if flags & os.O_CREAT:
            self.check_directory()
        name, directory = self._resolve(path)
        return os.open(name, flags | os.O_CLOEXEC, 0o600, dir_fd=directory)

    def close(self, fd: int) -> None:
        os.close(fd)

    def pread(self, fd: int, size: int, position: int) -> bytes:
        return os.pread(fd, size, position)

    def pwrite(self, fd: int, content: Buffer, position: int) -> int:
        return os.pwrite(fd, content, position)

    def sync(self, fd: int) -> None:
        """Make content and size durable."""
        if _F_FULLFSYNC is not None:
            fcntl.fcntl(fd, _F_FULLFSYNC)
        else:
            os.fdatasync(fd)

    def sync_directory(self, path: str) -> None:
        name, directory = self._resolve(path)
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def list_directory(self, path: str) -> list[str]:
        name, directory = self._resolve(path)
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def sync_everything(self) -> None:
        os.sync()

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def mkdir(self, path: str) -> None:
        self.check_directory()
        name, directory = self._resolve(path)
        os.mkdir(name, 0o700, dir_fd=directory)

    def unlink(self, path: str) -> None:
        self.check_directory()
        name, directory = self._resolve(path)
        os.unlink(name, dir_fd=directory)

    def rmdir(self, path: str) -> None:
        self.check_directory()
        name, directory = self._resolve(path)
        os.rmdir(name, dir_fd=directory)

    def rename(self, path: str, new_path: str) -> None:
        self.check_directory()
        name, directory = self._resolve(path)
        new_name, new_directory = self._resolve(new_path)
        os.replace(name, new_name, src_dir_fd=directory, dst_dir_fd=new_directory)
