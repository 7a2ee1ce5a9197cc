"""The file system of a world: it fails on demand, and a power cut takes any part of what was not synced.

SQLite has its own files, which keep every commit: a power cut is one of whole transactions there.
"""

from __future__ import annotations

import errno
import os
from random import Random
from typing import Any, NamedTuple

from broker.storage import FileOps

# Written at each flush and synced once a second of real time, so it is no part of the course of a world.
UNCOUNTED = "synced-ends"
OF_SQLITE = "store.db"


class Fault(OSError):
    """The error of a disk that failed on demand."""


class Change(NamedTuple):
    """An unsynced write or truncation, with what it replaced."""

    position: int
    content: bytes | None  # None: the file was truncated to `position`
    replaced: bytes
    size: int  # of the file before


class WorldDisk(FileOps):
    """Operations on the files of one world; it survives the brokers."""

    syncs_at_once = 1

    def __init__(self, random: Random) -> None:
        self._random = random
        self._paths: dict[int, str] = {}
        self._unsynced: dict[str, list[Change]] = {}
        self._left: int | None = None
        self._boots = 0
        self.boot_id = b"boot 0"
        self.failed = False

    # ---- for the world -----------------------------------------------------------------------------------------------

    def fail_after(self, operations: int) -> None:
        """Fail at this operation that changes something, and at all later ones until `repair`."""
        self._left = operations

    def repair(self) -> None:
        self._left = None
        self.failed = False

    def cut_power(self) -> None:
        """Leave any part of the unsynced changes."""
        for path, changes in sorted(self._unsynced.items(), key=_place):
            if not os.path.exists(path):
                continue
            with open(path, "r+b") as file:
                for change in reversed(changes):
                    _undo(file, change)
                fate = self._random.choice(["none", "some", "all"])
                for change in changes:
                    if fate == "all" or (fate == "some" and self._random.random() < 0.5):
                        _redo(file, change)
        self._unsynced.clear()
        self._boots += 1
        self.boot_id = b"boot %d" % self._boots

    # ---- operations --------------------------------------------------------------------------------------------------

    def open(self, path: str, flags: int) -> int:
        fd = super().open(path, flags)
        self._paths[fd] = path
        return fd

    def pwrite(self, fd: int, content: Any, position: int) -> int:
        path = self._paths[fd]
        self._count(path)
        size = os.fstat(fd).st_size
        replaced = os.pread(fd, len(content), position)
        self._note(path, Change(position, bytes(content), replaced, size))
        return super().pwrite(fd, content, position)

    def truncate(self, fd: int, size: int) -> None:
        path = self._paths[fd]
        self._count(path)
        before = os.fstat(fd).st_size
        replaced = os.pread(fd, max(0, before - size), size)
        self._note(path, Change(size, None, replaced, before))
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        path = self._paths[fd]
        self._count(path)
        self._unsynced.pop(path, None)

    def check_directory(self) -> None:
        # A flush calls this after its commit and before it acknowledges anything.
        self._count("")

    def sync_directory(self, path: str) -> None:
        self._count(path)

    def sync_everything(self) -> None:
        self._unsynced.clear()

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self._unsynced.pop(path, None)

    def rename(self, path: str, new_path: str) -> None:
        super().rename(path, new_path)
        if path in self._unsynced:
            self._unsynced[new_path] = self._unsynced.pop(path)

    def _note(self, path: str, change: Change) -> None:
        if not os.path.basename(path).startswith(OF_SQLITE):
            self._unsynced.setdefault(path, []).append(change)

    def _count(self, path: str) -> None:
        if path.endswith(UNCOUNTED):
            return
        if self._left is not None:
            self._left -= 1
            self.failed |= self._left <= 0
        if self.failed:
            raise Fault(errno.EIO, os.strerror(errno.EIO))


def _place(entry: tuple[str, list[Change]]) -> tuple[str, str]:
    """An order that the random ids of topics do not change: only one topic has segments."""
    directory, name = os.path.split(entry[0])
    partition = os.path.basename(directory)
    return name, partition if partition.isdigit() else ""


def _undo(file: Any, change: Change) -> None:
    file.seek(change.position)
    file.write(change.replaced)
    file.truncate(change.size)


def _redo(file: Any, change: Change) -> None:
    if change.content is None:
        file.truncate(change.position)
    else:
        file.seek(change.position)
        file.write(change.content)
