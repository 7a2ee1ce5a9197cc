"""Errors of the storage."""


class StorageError(Exception):
    """A write, sync or read of the data directory failed. The message has the path and the cause.

    After one from an append or a flush the log refuses further ones (see failure.py).
    """


class OutOfDescriptors(StorageError):
    """A file cannot be opened because the process or the system has no descriptor left. Nothing was changed: try later."""


class DamageError(StorageError):
    """Stored bytes are missing or changed. The message names the file and what is lost."""

    advice = "start with --accept-loss to continue without what is lost"

    def __str__(self) -> str:
        return f"{super().__str__()}; {self.advice}"


class StoreDamageError(DamageError):
    """Damage to the database that no start can skip, not even with --accept-loss."""

    advice = "`kgctl broker rescue` brings the records back into a new data directory"


class StoreMissingError(DamageError):
    """The database is missing beside the segments of topics that it listed."""

    advice = "`kgctl broker rescue` brings the records back into a new data directory, --accept-loss restores the topics in place"


class NewerFormatError(StorageError):
    """The data directory was written by a newer version of this broker."""


class ReplacedError(StorageError):
    """The data directory was removed or replaced while the broker ran."""
