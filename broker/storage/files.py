"""Files of the data directory: a bounded table of open files, and errors that name them."""

from __future__ import annotations

import errno
import logging
import os
import resource
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TypeVar
from weakref import WeakValueDictionary

from broker.storage.errors import DamageError, OutOfDescriptors, StorageError
from broker.storage.file_ops import Buffer, FileOps

T = TypeVar("T")
# A client that does not read may take a slice long after its bytes were checked.
CHECKED_FOR_S = 1.0

_EXHAUSTED = (errno.EMFILE, errno.ENFILE)
# The shortest time between two log lines about a lack of descriptors.
SHORTAGE_LINE_SECONDS = 10.0

logger = logging.getLogger(__name__)


def guarded(action: str, path: str, call: Callable[..., T], *arguments: object) -> T:
    """Run one file operation. An OSError becomes a StorageError with the path and the cause."""
    try:
        return call(*arguments)
    except OSError as error:
        raise storage_error(action, path, error) from error


def storage_error(action: str, path: str, error: OSError) -> StorageError:
    cause = error.strerror or str(error)
    if error.errno in _EXHAUSTED:
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return OutOfDescriptors(
            f"cannot {action} {path}: {cause}: the limit on open files is {soft}; raise it (ulimit -n)"
        )
    return StorageError(f"cannot {action} {path}: {cause}")


class OpenFile:
    """One open file. Its descriptor lives as long as an object refers to it."""

    __slots__ = ("__weakref__", "_ops", "fd", "identity", "path")

    def __init__(self, ops: FileOps, path: str, flags: int) -> None:
        self.fd = -1
        self._ops = ops
        self.path = path
        self.fd = ops.open(path, flags)
        status = os.fstat(self.fd)
        self.identity = status.st_dev, status.st_ino

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


class Source:
    """A file that slices name. It needs a descriptor only while one of them is written, or once it is unlinked."""

    __slots__ = ("__weakref__", "_files", "_identity", "is_gone", "path", "unlinked")

    def __init__(self, files: Files, file: OpenFile) -> None:
        self._files = files
        self._identity = file.identity
        self.path = file.path
        self.unlinked: OpenFile | None = None
        self.is_gone = False

    def open(self) -> OpenFile:
        """OutOfDescriptors: try again later. DamageError if another file has taken its place."""
        if self.is_gone:
            raise StorageError(f"{self.path} was deleted before the client had read it")
        file = self.unlinked or self._files.get(self.path)
        if file.identity != self._identity:
            raise DamageError(f"{self.path} was replaced")
        return file


class FileSlice:
    """Whole batches in a segment file, for sendfile. It holds neither memory nor, normally, a descriptor.

    The bytes were checked when it was made, and are again if they are written much later: `check` raises DamageError.
    """

    __slots__ = ("_check", "_checked_at", "_source", "end_offset", "is_cut", "length", "position")

    def __init__(self, source: Source, position: int, length: int, check: Callable[[OpenFile], None]) -> None:
        self._source = source
        self._check = check
        self._checked_at = time.monotonic()
        self.position = position
        self.length = length
        self.end_offset = -1  # behind the last batch
        self.is_cut = False  # more could be read, but it is in another file, or checking it would take too long at once

    def open(self) -> OpenFile:
        """The file, to be dropped as soon as a part of the slice is written. OutOfDescriptors: try again later."""
        file = self._source.open()
        if time.monotonic() - self._checked_at > CHECKED_FOR_S:
            self._check(file)
            self._checked_at = time.monotonic()
        return file

    def __len__(self) -> int:
        return self.length

    def part(self, start: int, length: int) -> FileSlice:
        """Some of the bytes; they begin and end with whole batches."""
        found = FileSlice(self._source, self.position + start, length, self._check)
        found._checked_at = self._checked_at
        return found

    def tobytes(self) -> bytes:
        file = self.open()
        content = file.read(self.length, self.position)
        if len(content) != self.length:
            raise DamageError(f"{file.path} is truncated to less than {self.position + self.length} bytes")
        return content


class Files:
    """Open files by path. The table keeps the `limit` files that were used last; a flush may have to sync half as many
    others (see Pending), and unlinked files that slices name are half as many.

    Without `durable` (durability "process") no record and no commit is synced: the page cache outlives a killed broker.
    """

    def __init__(self, ops: FileOps, *, durable: bool = True, limit: int | None = None) -> None:
        self.ops = ops
        self.durable = durable
        self.limit = limit if limit is not None else default_limit()
        self.spares = Spares()
        self._table: OrderedDict[str, OpenFile] = OrderedDict()
        # Also those that the table has dropped while something else refers to them.
        self._open: WeakValueDictionary[str, OpenFile] = WeakValueDictionary()
        self._sources: WeakValueDictionary[str, Source] = WeakValueDictionary()
        self._unlinked: WeakValueDictionary[str, OpenFile] = WeakValueDictionary()
        self._quiet_until = 0.0

    def get(self, path: str, *, create: bool = False, exclusive: bool = False) -> OpenFile:
        """The open file. `create` makes a missing one; with `exclusive` it must be missing."""
        file = self._table.get(path)
        if file is not None:
            self._table.move_to_end(path)
            return file
        while len(self._table) >= self.limit:
            self._table.popitem(last=False)
        file = self._open.get(path)
        if file is None:
            flags = os.O_RDWR | (os.O_CREAT if create else 0) | (os.O_EXCL if exclusive else 0)
            file = self._with_room("open", path, OpenFile, self.ops, path, flags)
            self._open[path] = file
        self._table[path] = file
        return file

    def _with_room(self, action: str, path: str, call: Callable[..., T], *arguments: object) -> T:
        """Run an operation that needs a descriptor; if there is none, close what can be closed."""
        while True:
            try:
                return call(*arguments)
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    if self._table:
                        self._table.popitem(last=False)
                        continue
                    if self.spares.lend():
                        continue
                failure = storage_error(action, path, error)
                if isinstance(failure, OutOfDescriptors) and time.monotonic() >= self._quiet_until:
                    self._quiet_until = time.monotonic() + SHORTAGE_LINE_SECONDS
                    logger.error("%s", failure)
                raise failure from error

    def hold_spares(self) -> None:
        """Open the spare descriptors that are missing. OutOfDescriptors if that is impossible."""
        while not self.spares.complete:
            self._with_room("open", os.devnull, self.spares.add)

    def slice(self, file: OpenFile, position: int, length: int, check: Callable[[OpenFile], None]) -> FileSlice:
        """A part of a file that stays readable after the file is unlinked."""
        source = self._sources.get(file.path)
        if source is None or source.unlinked is not None:
            source = self._sources[file.path] = Source(self, file)
        return FileSlice(source, position, length, check)

    def forget(self, path: str) -> None:
        self._table.pop(path, None)
        self._open.pop(path, None)

    def forget_all(self) -> None:
        self._table.clear()
        self._open.clear()
        self.spares.close()

    def sync(self, file: OpenFile) -> None:
        if self.durable:
            file.sync()

    def sync_directory(self, path: str) -> None:
        if self.durable:
            self._with_room("sync directory", path, self.ops.sync_directory, path)

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory; none if it does not exist."""
        try:
            return self._with_room("list", path, self.ops.list_directory, path)
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return []
            raise

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
        self._keep_for_slices(path)
        self.forget(path)
        try:
            self.ops.unlink(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error("remove", path, error) from error

    def _keep_for_slices(self, path: str) -> None:
        """Keep a file open that unsent answers name. If too many are, closing a connection ends the answer."""
        source = self._sources.pop(path, None)
        if source is None:
            return
        try:
            if len(self._unlinked) < max(1, self.limit // 2):
                source.unlinked = self._unlinked[path] = source.open()
        except StorageError as error:
            logger.warning("an answer cannot be completed: %s", error)
        source.is_gone = source.unlinked is None

    def rename_directory(self, directory: str, new_path: str) -> bool:
        """Rename, and drop open files below it. False if it does not exist."""
        below = directory + os.sep
        for path in [path for path in self._open if path.startswith(below)]:
            self.forget(path)
        try:
            self.ops.rename(directory, new_path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error("rename", directory, error) from error
        for path, source in [(path, found) for path, found in self._sources.items() if path.startswith(below)]:
            del self._sources[path]
            source.path = new_path + path[len(directory) :]
            self._sources[source.path] = source
        return True

    def removing_tree(self, directory: str) -> Iterator[None]:
        """Remove a directory and everything below it, one entry per step; do nothing if it does not exist."""
        for name in self.list_directory(directory):
            path = os.path.join(directory, name)
            if stat.S_ISDIR(os.lstat(path).st_mode):
                yield from self.removing_tree(path)
            else:
                self.unlink(path)
            yield
        if os.path.isdir(directory):
            guarded("remove", directory, self.ops.rmdir, directory)


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


class Spares:
    """Descriptors that appends require and only a flush uses: it must not fail because others opened too many files."""

    COUNT = 2

    def __init__(self) -> None:
        self._held: list[int] = []
        self.lent = False  # a flush is running

    @property
    def complete(self) -> bool:
        return len(self._held) == self.COUNT

    def add(self) -> None:
        self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def lend(self) -> bool:
        """Close one in favour of the flush that is running; False if there is none."""
        if not self.lent or not self._held:
            return False
        os.close(self._held.pop())
        return True

    def close(self) -> None:
        while self._held:
            os.close(self._held.pop())

    def __del__(self) -> None:
        self.close()


def default_limit() -> int:
    """An eighth of the soft limit on open files: all open files (see Files) take a quarter, and sockets need the rest."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY:
        return 1024
    return max(8, min(1024, soft // 8))
