"""One round for all who wait: sync every touched segment, then one transaction, then the high watermarks move.

The first failure is final: what reached the disk is unknown, so nothing may be acknowledged any more.
"""

from __future__ import annotations

import time
from typing import Protocol

from broker.storage.errors import StorageError
from broker.storage.failure import Failure
from broker.storage.files import Files, OpenFile
from broker.storage.store.commit_marker import SyncedEnd, SyncedEnds
from broker.storage.store.database import WATERMARK_SYNC_SECONDS, Store

DELETED_SUFFIX = ".deleted"


class Written(Protocol):
    """A partition with appended bytes that wait for a round."""

    def synced(self) -> None:
        """The bytes are on disk: record the new end in the store if that is due."""

    def committed(self) -> tuple[int, SyncedEnd]:
        """The round is durable: move the high watermark. Returns the partition's number and synced end."""


class Flush:
    """What the next flush has to make durable, and in which order."""

    def __init__(self, store: Store, files: Files, ends: SyncedEnds, failure: Failure) -> None:
        self._store = store
        self._files = files
        self._ends = ends
        self._touched: dict[str, OpenFile] = {}
        self._written: dict[Written, None] = {}
        self._directories: dict[str, None] = {}
        self._doomed: list[str] = []
        self._doomed_trees: list[str] = []
        self.deleted_trees: list[str] = []  # put aside, to be removed by housekeeping
        self._ends_synced_at = time.monotonic()
        self._ends_unsynced = False
        self._failure = failure
        self.count = 0  # of flushes so far

    @property
    def dirty(self) -> bool:
        return bool(self._written or self._doomed or self._doomed_trees or self._store.dirty)

    def touch(self, partition: Written, file: OpenFile) -> None:
        """This round has to sync `file` for `partition`."""
        self._written[partition] = None
        if file.path not in self._touched:
            self._touched[file.path] = file
            if len(self._touched) >= self._files.limit:
                self._sync_touched()

    def touch_directory(self, path: str) -> None:
        self._directories[path] = None

    def unlink_after(self, path: str) -> None:
        """Remove this file once the store no longer names it."""
        self._doomed.append(path)

    def unlink_tree_after(self, directory: str) -> None:
        """Put the directory of a topic aside once the store no longer names it. What is in it can go later, bit by bit."""
        self._doomed_trees.append(directory)

    def forget(self, partition: Written) -> None:
        """The partition was deleted: this round is no longer about it."""
        self._written.pop(partition, None)

    def _sync_touched(self) -> None:
        if self._files.durable:
            for file in self._touched.values():
                file.sync()
        self._touched.clear()

    def run(self) -> None:
        self._failure.check()
        try:
            self._sync_touched()
            for path in self._directories:
                self._files.sync_directory(path)
            self._directories.clear()
            written = list(self._written)
            for partition in written:
                partition.synced()
            self._store.commit()
            self._written.clear()
            for partition in written:
                self._ends.write(*partition.committed())
            if written:
                self._ends_unsynced = True
            if time.monotonic() - self._ends_synced_at >= WATERMARK_SYNC_SECONDS:
                self.sync_ends()
            self._remove_doomed()
            self.count += 1
        except StorageError as error:
            self._failure.remember(error)
            raise

    def _remove_doomed(self) -> None:
        doomed, self._doomed = self._doomed, []
        for path in doomed:
            self._files.unlink(path)
        trees, self._doomed_trees = self._doomed_trees, []
        for tree in trees:
            if self._files.rename_directory(tree, tree + DELETED_SUFFIX):
                self.deleted_trees.append(tree + DELETED_SUFFIX)

    def sync_ends(self) -> None:
        self._ends_synced_at = time.monotonic()
        if self._ends_unsynced and self._files.durable:
            self._ends.sync()
        self._ends_unsynced = False
