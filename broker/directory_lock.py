"""The lock of a data directory: taking it, finding its holder, and noticing that the directory was replaced.

A broker locks the directory itself and the file `lock` in it. The first lock excludes a second broker even if the file
was deleted; the file names the holder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from pathlib import Path

from broker.atomic_file import remove_file
from broker.data_directory import LOCK_NAME, READY_NAME
from broker.light_named_tuples import NamedTuple
from broker.process_identity import ProcessIdentity
from broker.ready_file import Ready, read_ready, read_ready_file

# Those who look for the holder take shared locks for an instant: retry before giving up.
ATTEMPTS, ATTEMPT_SECONDS = 10, 0.01
MOVE_ADVICE = "stop a broker before moving or deleting its data directory"

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO would wait for a writer.
_LOCK_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class HeldError(Exception):
    """Another broker holds the lock of the data directory."""


class Hold:
    """A data directory that this process has locked. The locks last until `close` or the end of the process."""

    def __init__(self, data_dir: Path, descriptor: int, lock: int) -> None:
        self.path = str(data_dir)
        self.descriptor = descriptor
        self._lock_path = str(data_dir / LOCK_NAME)
        self._lock = lock

    def lost(self) -> str | None:
        """Why the path no longer leads to the locked directory and lock file; None while it does."""
        path = self.path
        try:
            if not os.path.samestat(os.stat(path), os.fstat(self.descriptor)):
                return f"another directory took the place of the data directory {path}; {MOVE_ADVICE}"
            path = self._lock_path
            if not os.path.samestat(os.lstat(path), os.fstat(self._lock)):
                return f"another file took the place of {path}; {MOVE_ADVICE}"
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                return f"cannot check the data directory: {path}: {error.strerror}"
            what = path if path == self._lock_path else f"the data directory {path}"
            return f"{what} was removed or renamed while the broker ran; {MOVE_ADVICE}"
        return None

    def close(self) -> None:
        os.close(self._lock)
        os.close(self.descriptor)


def hold(data_dir: Path) -> Hold:
    """Lock the directory. Raises HeldError."""
    with contextlib.ExitStack() as opened:
        directory = os.open(data_dir, _DIRECTORY)
        opened.callback(os.close, directory)
        _lock(directory, data_dir)
        try:
            lock = os.open(LOCK_NAME, os.O_RDWR | os.O_CREAT | _LOCK_FILE, 0o600, dir_fd=directory)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(data_dir / LOCK_NAME)) from error
        opened.callback(os.close, lock)
        _lock(lock, data_dir)
        os.ftruncate(lock, 0)
        os.pwrite(lock, ProcessIdentity.own().to_bytes(), 0)
        held = Hold(data_dir, directory, lock)
        opened.pop_all()
    return held


def _lock(descriptor: int, data_dir: Path) -> None:
    for attempt in range(ATTEMPTS):
        if not _is_locked(descriptor, fcntl.LOCK_EX):
            return
        if attempt < ATTEMPTS - 1:
            time.sleep(ATTEMPT_SECONDS)
    raise HeldError(_describe(find_holder(data_dir), data_dir))


def _is_locked(descriptor: int, kind: int = fcntl.LOCK_SH) -> bool:
    """Try to take the lock. True if another open file holds it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return True
    return False


def _describe(holder: Holder | None, data_dir: Path) -> str:
    if holder is None or holder.identity is None:
        return f"a process that {data_dir / LOCK_NAME} does not name"
    ready = read_ready(data_dir / READY_NAME)
    where = f"at {ready.address}" if ready is not None and ready.pid == holder.pid else "not serving yet"
    return f"pid {holder.pid}, {where}"


class Holder(NamedTuple):
    """The process that holds a data directory. Without an identity, the file `lock` does not say which one it is."""

    identity: ProcessIdentity | None

    @property
    def pid(self) -> int | None:
        return None if self.identity is None else self.identity.pid


def find_holder(data_dir: Path) -> Holder | None:
    """The process that holds the lock of the directory; None if there is none."""
    with contextlib.ExitStack() as opened:
        try:
            directory = os.open(data_dir, _DIRECTORY)
        except (OSError, ValueError):
            return None
        opened.callback(os.close, directory)
        try:
            lock = os.open(LOCK_NAME, os.O_RDONLY | _LOCK_FILE, dir_fd=directory)
        except OSError:
            return Holder(None) if _is_locked(directory) else None
        opened.callback(os.close, lock)
        if stat.S_ISREG(os.fstat(lock).st_mode) and _is_locked(lock):
            return Holder(ProcessIdentity.from_bytes(os.pread(lock, 4096, 0)))
        return Holder(None) if _is_locked(directory) else None


def holder_pid(data_dir: Path) -> int | None:
    """The pid of the broker that holds the lock; None if there is none."""
    holder = find_holder(data_dir)
    return None if holder is None else holder.pid


def running(data_dir: Path) -> Ready | None:
    """The ready file of the broker that serves this directory; None if there is none or the file is stale."""
    ready = read_ready(data_dir / READY_NAME)
    return ready if ready is not None and ready.pid == holder_pid(data_dir) else None


def remove_stale_ready(path: Path) -> None:
    """Remove a ready file if its broker no longer runs."""
    found = read_ready_file(path)
    if found is None:
        return
    ready, file = found
    holder = find_holder(Path(ready.data_dir))
    # A holder without an identity may be that broker.
    if holder is None or holder.pid not in (None, ready.pid):
        remove_file(None, str(path), file)
