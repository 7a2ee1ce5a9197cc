"""The file `rebuilding`: which files an attempt to rebuild partitions writes before its commit.

If the attempt is killed, the next one removes them: it must not take a repaired file, in which empty batches cover lost
offsets, for a file that nothing is missing from.
"""

from __future__ import annotations

import os

from broker.storage.files import Files
from broker.storage.segments.shared import Shared
from broker.storage.store.database import Store

NAME = "rebuilding"
_COMMITTED = "rebuilt"  # in meta: the last attempt that was committed


class Attempt:
    """One attempt. Its commit makes its files part of the store."""

    def __init__(self, shared: Shared) -> None:
        self._files: Files = shared.files
        self._store: Store = shared.store
        self._root = shared.root
        self._path = os.path.join(os.path.dirname(shared.root), NAME)
        self._written = 0
        self._remove_last()
        self._number = os.urandom(8).hex()
        self._store.set_meta(_COMMITTED, self._number)

    def _remove_last(self) -> None:
        """Remove the files of an attempt that was not committed."""
        if not os.path.exists(self._path):
            return
        file = self._files.get(self._path)
        number, *paths = file.read(file.size(), 0).decode(errors="replace").split("\n")
        self._files.forget(self._path)
        if number != self._store.meta(_COMMITTED):
            # A line that was cut short names no file.
            for path in paths[:-1]:
                self._files.unlink(os.path.join(self._root, path))
        self._files.unlink(self._path)

    def note(self, path: str) -> None:
        """This file will be written; it does not exist yet."""
        if not self._written:
            self._append(f"{self._number}\n")
        self._append(f"{os.path.relpath(path, self._root)}\n")

    def _append(self, line: str) -> None:
        file = self._files.get(self._path, create=True)
        file.write(line.encode(), self._written)
        self._files.sync(file)
        self._written += len(line)

    def end(self) -> None:
        """It is committed."""
        if self._written:
            self._files.unlink(self._path)
