"""Files of the data directory: a bounded table of open files, and errors that name them."""

from __future__ import annotations

import errno
import os
import resource
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TypeVar

from broker.storage.errors import DamageError, StorageError
from broker.storage.file_ops import Buffer, FileOps

T = TypeVar("T")


def guarded(action: str, path: str, call: Callable[..., T], *arguments: object) -> T:
    """Run one file operation. An OSError becomes a StorageError with the path and the cause."""
    try:
        return call(*arguments)
    except OSError as error:
        raise storage_error(action, path, error) from error


def storage_error(action: str, path: str, error: OSError) -> StorageError:
    cause = error.strerror or str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        cause = f"{cause}: the limit on open files is {soft}, too low for these segments; raise it (ulimit -n)"
    return StorageError(f"cannot {action} {path}: {cause}")


class OpenFile:
    """One open file. Its descriptor lives as long as an object refers to it, so a reply that is still being sent
    keeps its file open after the table has dropped it."""

    __slots__ = ("__weakref__", "_ops", "fd", "path")

    def __init__(self, ops: FileOps, path: str, flags: int) -> None:
        self.fd = -1
        self._ops = ops
        self.path = path
        self.fd = ops.open(path, flags)

    def __del__(self) -> None:
        if self.fd >= 0:
            self._ops.close(self.fd)
            self.fd = -1

    def read(self, size: int, position: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        content = guarded("read", self.path, self._ops.pread, self.fd, size, position)
        if len(content) == size or not content:
            return content
        pieces = [content]
        got = len(content)
        while got < size:
            content = guarded("read", self.path, self._ops.pread, self.fd, size - got, position + got)
            if not content:
                break
            pieces.append(content)
            got += len(content)
        return b"".join(pieces)

    def write(self, content: Buffer, position: int) -> None:
        try:
            written = self._ops.pwrite(self.fd, content, position)
            if written == len(content):
                return
            view = memoryview(content)
            while written < len(view):
                step = self._ops.pwrite(self.fd, view[written:], position + written)
                if step == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                written += step
        except OSError as error:
            raise storage_error("write", self.path, error) from error

    def truncate(self, size: int) -> None:
        guarded("truncate", self.path, self._ops.truncate, self.fd, size)

    def sync(self) -> None:
        guarded("sync", self.path, self._ops.sync, self.fd)

    def size(self) -> int:
        return guarded("stat", self.path, os.fstat, self.fd).st_size


class FileSlice:
    """Whole batches in a segment file, for sendfile. Keeps the file open, even if the segment is deleted."""

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
            raise DamageError(f"{self.file.path} is truncated to less than {self.position + self.length} bytes")
        return content


class Files:
    """Open files by path, at most `limit` of them; the least recently used is dropped first.

    Without `durable` (durability "process") nothing is ever synced: the page cache outlives a killed broker.
    """

    def __init__(self, ops: FileOps, *, durable: bool = True, limit: int | None = None) -> None:
        self.ops = ops
        self.durable = durable
        self.limit = limit if limit is not None else default_limit()
        self._open: OrderedDict[str, OpenFile] = OrderedDict()

    def get(self, path: str, *, create: bool = False, exclusive: bool = False) -> OpenFile:
        """The open file. `create` makes a missing one; with `exclusive` it must be missing."""
        file = self._open.get(path)
        if file is not None:
            self._open.move_to_end(path)
            return file
        flags = os.O_RDWR | (os.O_CREAT if create else 0) | (os.O_EXCL if exclusive else 0)
        while len(self._open) >= self.limit:
            self._open.popitem(last=False)
        try:
            file = self._open_file(path, flags)
        except OSError as error:
            raise storage_error("open", path, error) from error
        self._open[path] = file
        return file

    def _open_file(self, path: str, flags: int) -> OpenFile:
        while True:
            try:
                return OpenFile(self.ops, path, flags)
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open:
                    raise
                self._open.popitem(last=False)

    def forget(self, path: str) -> None:
        self._open.pop(path, None)

    def forget_all(self) -> None:
        self._open.clear()

    def sync(self, file: OpenFile) -> None:
        if self.durable:
            file.sync()

    def sync_directory(self, path: str) -> None:
        if self.durable:
            guarded("sync directory", path, self.ops.sync_directory, path)

    def make_directory(self, path: str, *, sync: bool = True) -> bool:
        """Make one directory in an existing one. Without `sync` the caller syncs the parent. False if it exists."""
        try:
            self.ops.mkdir(path)
        except FileExistsError:
            return False
        except OSError as error:
            raise storage_error("make directory", path, error) from error
        if sync:
            self.sync_directory(os.path.dirname(path))
        return True

    def make_directories(self, path: str) -> None:
        """Make a directory and its missing parents, durably."""
        path = os.path.abspath(path)
        if not os.path.isdir(path):
            self.make_directories(os.path.dirname(path))
            self.make_directory(path)

    def sync_parent(self, path: str) -> None:
        """Make the name of a directory durable, if we may read its parent."""
        if self.durable:
            parent = os.path.dirname(os.path.abspath(path))
            try:
                self.ops.sync_directory(parent)
            except PermissionError:
                return
            except OSError as error:
                raise storage_error("sync directory", parent, error) from error

    def unlink(self, path: str) -> None:
        """Remove a file if it exists. The caller syncs the directory where that matters."""
        self.forget(path)
        try:
            self.ops.unlink(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error("remove", path, error) from error

    def rename_directory(self, directory: str, new_path: str) -> bool:
        """Rename, and drop open files below it. False if it does not exist."""
        for path in [path for path in self._open if path.startswith(directory + os.sep)]:
            del self._open[path]
        try:
            self.ops.rename(directory, new_path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error("rename", directory, error) from error
        return True

    def removing_tree(self, directory: str) -> Iterator[None]:
        """Remove a directory and everything below it, one entry per step; do nothing if it does not exist."""
        for parent, directories, names in os.walk(directory, topdown=False):
            for name in names:
                self.unlink(os.path.join(parent, name))
                yield
            for name in directories:
                guarded("remove", os.path.join(parent, name), self.ops.rmdir, os.path.join(parent, name))
                yield
        if os.path.isdir(directory):
            guarded("remove", directory, self.ops.rmdir, directory)

    def __len__(self) -> int:
        return len(self._open)


class PinnedFile:
    """A file that stays open outside the bounded table. It is opened, or made, at first use."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._file: OpenFile | None = None

    def get(self) -> OpenFile:
        if self._file is None:
            self._file = self._files.get(self._path, create=True)
            self._files.forget(self._path)
        return self._file


def default_limit() -> int:
    """A quarter of the soft limit on open files: sockets need the rest."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return 1024
    return max(8, min(1024, soft // 4))
