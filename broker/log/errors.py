"""What the log raises when it cannot keep a promise."""


class StorageError(Exception):
    """A write, sync or read of the data directory failed; the message names the path and the cause.

    After one of these from an append or a commit the log refuses all further commits: what the failed
    call left on the disk is unknown until the next start.
    """


class DamageError(StorageError):
    """Bytes that were once stored are gone or changed; the message names the file and what is lost."""


class NewerFormatError(StorageError):
    """The data directory was written by a newer version of this broker."""
