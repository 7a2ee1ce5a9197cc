"""Changes of folders that survive a power cut, and locks that end with their process."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from kgctl.pipelines.tables.errors import Busy, Damaged

_POLL_S = 0.02
# renameat2(2): the flag, and what stands for the current folder.
_EXCHANGE, _AT_FDCWD = 2, -100
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
# hard links: not supported by the file system, or too many of one file
_NO_LINK = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS, errno.EXDEV)


def make_folder(path: Path) -> None:
    """Create the folder and its parents, and sync each. Raises Damaged if a file has the name of one."""
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError:
        raise Damaged(f"{path} is not a folder; move it to another place") from None
    sync(path.parent)


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(root: Path, files: Iterable[str]) -> None:
    """Sync the files, relative to `root`, and every folder between them and the root's parent."""
    folders = {root.parent, root}
    for file in files:
        path = root / file
        sync(path)
        folders.update(parent for parent in path.parents if parent.is_relative_to(root))
    for folder in sorted(folders, reverse=True):
        sync(folder)


def write_durably(path: Path, content: bytes) -> None:
    """Replace the file in one step, also if the power is cut. The draft has the suffix .new."""
    draft = path.with_suffix(".new")
    try:
        with open(draft, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def link(source: Path, target: Path) -> None:
    """A second name for the file, or a copy where the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        shutil.copyfile(source, target)
        sync(target)


def exchange(one: Path, other: Path, aside: Path) -> None:
    """Exchange two folders: whoever lists one sees the old content or the new.

    Where the system cannot (NFS, macOS), `other` goes to `aside` first, and is missing until the second rename.
    """
    if _renameat2(one, other):
        return
    os.rename(other, aside)
    os.rename(one, other)


def _renameat2(one: Path, other: Path) -> bool:
    if sys.platform != "linux":
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(one))


def hold(path: Path, folder: Path, doing: str, wait_s: float = 0.0, *, option: str = "--out") -> int:
    """Lock a file for this process and return its descriptor; closing it ends the lock. Raises Busy.

    `doing` is what a second process will read about this one, and `option` what it may give instead; `wait_s`: how long to wait
    for the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not lock_within(descriptor, wait_s):
            pid, _, does = os.read(descriptor, 200).decode("ascii", "replace").strip().partition(" ")
            process = f"process {pid}" if pid.isdigit() else "another process"
            raise Busy(f"{folder}: {process} {does or doing}; wait for it to end, or give another {option}")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {doing}\n".encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def lock_within(descriptor: int, wait_s: float) -> bool:
    """Whether the file could be locked for this process alone."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        else:
            return True
