"""Files and directories below segments/ that the store does not list: what becomes of each.

The store notes in one transaction that it stops listing a path, and why. So a start recognizes the directory of a
deleted topic and the original of a repaired segment, wherever the last run ended. Only those of deleted topics are
removed: anything else that is unknown may hold acknowledged records and is renamed to *.damaged.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection

from broker.storage.files import Files, guarded
from broker.storage.segments.pending import DELETED_SUFFIX
from broker.storage.segments.shared import Shared
from broker.storage.store.database import Store
from broker.storage.store.values import as_text

logger = logging.getLogger(__name__)

DAMAGED_SUFFIX = ".damaged"
_DELETED, _DAMAGED = "deleted", "damaged"


def note_deleted_topic(store: Store, topic_id: bytes) -> None:
    """The topic's directory holds nothing any more once this transaction is durable."""
    _note(store, topic_id.hex(), _DELETED)


def note_damaged_file(shared: Shared, path: str) -> None:
    """A repair replaces this segment file: `set_aside` renames it once this transaction is durable."""
    _note(shared.store, os.path.relpath(path, shared.root), _DAMAGED)


def _note(store: Store, path: str, fate: str) -> None:
    store.execute("INSERT OR REPLACE INTO unlisted VALUES (?, ?)", (path, fate))


def _noted(store: Store, fate: str) -> list[str]:
    return [as_text(path) for (path,) in store.query("SELECT path FROM unlisted WHERE fate = ? ORDER BY path", (fate,))]


def noted_deletions(store: Store) -> set[str]:
    """The names of the directories of deleted topics."""
    return set(_noted(store, _DELETED))


def _settle(store: Store, paths: Collection[str]) -> None:
    if paths:
        store.derive_many("DELETE FROM unlisted WHERE path = ?", [(path,) for path in paths])


def damaged_files(shared: Shared) -> set[str]:
    """The paths of the files that `set_aside` will rename."""
    return {os.path.join(shared.root, path) for path in _noted(shared.store, _DAMAGED)}


def set_aside(shared: Shared) -> None:
    """Rename the originals of repaired segments, which the store no longer lists, and remove their indexes."""
    files, noted = shared.files, _noted(shared.store, _DAMAGED)
    directories: dict[str, None] = {}
    for relative in noted:
        path = os.path.join(shared.root, relative)
        if os.path.exists(path):
            keep_damaged(files, path)
            directories[os.path.dirname(path)] = None
        files.unlink(path.removesuffix(".log") + ".index")
    for directory in directories:
        files.sync_directory(directory)
    _settle(shared.store, noted)


def keep_damaged(files: Files, path: str) -> str:
    """Rename a file or directory to a free name that ends in .damaged; return that name."""
    kept = damaged_name(path)
    files.forget(path)
    guarded("rename", path, files.ops.rename, path, kept)
    return kept


def damaged_name(path: str) -> str:
    """The name under which a damaged file or directory is kept: the first that is free."""
    kept, number = path + DAMAGED_SUFFIX, 1
    while os.path.lexists(kept):
        number += 1
        kept = f"{path}.{number}{DAMAGED_SUFFIX}"
    return kept


def find_orphans(shared: Shared, known: Collection[str]) -> None:
    """Hand the directories of deleted topics to housekeeping; set aside those of unknown topics."""
    deleted = _noted(shared.store, _DELETED)
    names = shared.files.list_directory(shared.root)
    for name in sorted(names):
        path = os.path.join(shared.root, name)
        if name in known or name.endswith(DAMAGED_SUFFIX):
            continue
        if name in deleted or name.endswith(DELETED_SUFFIX):
            shared.pending.deleted_trees.append(path)
        else:
            kept = keep_damaged(shared.files, path)
            logger.warning("%s belongs to no topic of the store; it is kept as %s", path, os.path.basename(kept))
    gone = set(deleted) - {name.removesuffix(DELETED_SUFFIX) for name in names}
    if gone:
        # A power cut must not bring back a directory that is no longer noted.
        shared.files.sync_directory(shared.root)
        _settle(shared.store, gone)
