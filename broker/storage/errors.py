"""What the log raises when it cannot keep a promise."""


class StorageError(Exception):
    """A write, sync or read of the data directory failed; the message names the path and the cause.

    After one of these from an append or a commit the log refuses all further commits: what the failed
    call left on the disk is unknown until the next start.
    """


class DamageError(StorageError):
    """Bytes that were once stored are gone or changed; the message names the file and what is lost."""

    advice = "a start with --accept-loss goes on without what is lost"

    def __str__(self) -> str:
        return f"{super().__str__()}; {self.advice}"


class StoreDamageError(DamageError):
    """Damage to the database that a start cannot pass over, whatever is accepted."""

    advice = "nothing can be read without it: put back a copy of the data directory, or start on an empty one"


class NewerFormatError(StorageError):
    """The data directory was written by a newer version of this broker."""
