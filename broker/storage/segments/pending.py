"""Work that segments leave to the next flush: files and directories to sync first, and files to remove afterwards."""

from __future__ import annotations

import os
from typing import Protocol

from broker.storage.files import Files, OpenFile
from broker.storage.segments.synced_ends import SyncedEnd
from broker.storage.segments.topic_files import TopicFiles
from broker.storage.store.catalog import Topic
from broker.storage.syncs import Syncs

DELETED_SUFFIX = ".deleted"


class Written(Protocol):
    """A partition with appended bytes that wait for a flush."""

    def synced(self) -> None:
        """The bytes are on disk: write a checkpoint to the store if one is due."""

    def flushed(self) -> tuple[int, SyncedEnd]:
        """The flush is durable: move the high watermark. Return the partition's number and synced end."""


class Pending:
    """Filled by appends and deletions, emptied by each flush."""

    def __init__(self, files: Files, topic_files: TopicFiles) -> None:
        self._files = files
        self._syncs = Syncs(files.ops.syncs_at_once)
        self._most_touched = max(1, files.limit // 2)
        self.topic_files = topic_files
        self._touched: dict[str, OpenFile] = {}
        self._directories: dict[str, None] = {}
        self.doomed: list[str] = []
        self.doomed_trees: list[str] = []
        self.dropped_partitions: list[int] = []  # numbers that the store no longer lists
        self.written: dict[Written, None] = {}
        self.deleted_trees: list[str] = []  # renamed directories that housekeeping removes

    def touch(self, partition: Written, file: OpenFile) -> None:
        """The next flush has to sync `file` for `partition`."""
        self.written[partition] = None
        if file.path not in self._touched:
            self._touched[file.path] = file
            if len(self._touched) >= self._most_touched:
                self._sync_files()

    def make_directories(self, topic: Topic, directory: str) -> None:
        """Make the directory of a partition that gets its first record; the next flush has to sync it."""
        topic_directory = os.path.dirname(directory)
        for made in (topic_directory, directory):
            if self._files.make_directory(made, sync=False):
                self.touch_directory(os.path.dirname(made))
                if made == topic_directory:
                    self.topic_files.note(topic)

    def touch_directory(self, path: str) -> None:
        self._directories[path] = None

    def unlink_after(self, path: str) -> None:
        """Remove this file once the store no longer lists it."""
        self.doomed.append(path)

    def unlink_tree_after(self, directory: str) -> None:
        """Rename the directory of a deleted topic once the store no longer lists it; its files are removed in slices."""
        self.doomed_trees.append(directory)

    def forget(self, partition: Written) -> None:
        """The partition was deleted and needs no flush."""
        self.written.pop(partition, None)

    def sync(self) -> None:
        """Write the files of changed topics, and sync all touched files and directories."""
        self._sync_files()
        for directory in self.topic_files.write():
            self.touch_directory(directory)
        for path in self._directories:
            self._files.sync_directory(path)
        self._directories.clear()

    def _sync_files(self) -> None:
        if self._files.durable:
            self._syncs.run([file.sync for file in self._touched.values()])
        self._touched.clear()

    def remove_doomed(self) -> None:
        """The store is durable without them: remove files and set directories aside."""
        doomed, self.doomed = self.doomed, []
        for path in doomed:
            self._files.unlink(path)
        trees, self.doomed_trees = self.doomed_trees, []
        for tree in trees:
            kept = _deleted_name(tree)
            if self._files.rename_directory(tree, kept):
                self.deleted_trees.append(kept)


def _deleted_name(tree: str) -> str:
    """The first free name. One is in use if a power cut lost the deletion of a topic, but not its renamed directory."""
    kept, number = tree + DELETED_SUFFIX, 1
    while os.path.lexists(kept):
        number += 1
        kept = f"{tree}.{number}{DELETED_SUFFIX}"
    return kept
