"""The first failed write or sync of a log. It is final: what reached the disk is unknown until the next start."""

from __future__ import annotations

from broker.storage.errors import StorageError


class Failure:
    """Shared by everything that writes to one data directory; every append and flush checks it first."""

    __slots__ = ("cause",)

    def __init__(self) -> None:
        self.cause: StorageError | None = None

    def check(self) -> None:
        """Raise the first failure, if there was one."""
        if self.cause is not None:
            raise self.cause

    def remember(self, error: StorageError) -> None:
        """Keep the first failure; later ones are its consequences."""
        if self.cause is None:
            self.cause = error
