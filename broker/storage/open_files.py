"""The files that a log keeps open by name: what it writes to one that was removed or replaced is lost when it ends."""

from __future__ import annotations

import os

NAMES = ("segments", "store.db", "store.db-wal", "commit-marker", "synced-ends")


class OpenFiles:
    """Those of one data directory, as they are when this object is made."""

    def __init__(self, directory: str) -> None:
        paths = [os.path.join(directory, name) for name in NAMES]
        self._identities = {path: found for path in paths if (found := _identity(path)) is not None}

    def replaced(self) -> str | None:
        """The path of the first that was removed or replaced."""
        for path, identity in self._identities.items():
            if _identity(path) != identity:
                return path
        return None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
