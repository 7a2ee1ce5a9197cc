"""Failures that keep the broker from starting or stop it: an exit code and one line for the user for each.

Codes up to 7 have the meaning that they have for every kgctl command; codes above 10 are specific to the broker.
"""

from __future__ import annotations

import errno
from pathlib import Path

from broker.config.option import ConfigError
from broker.directory_lock import HeldError
from broker.ready_file import UnsafeReadyFileError

UNEXPECTED, USAGE, HELD = 1, 2, 6
DAMAGE, NEWER, NO_SPACE, DESCRIPTORS, ADDRESS, NETWORK, DIRECTORY, STORAGE, REPLACED = range(11, 20)

# Limits of the operating system, wherever the broker meets them.
LIMITS = {errno.ENOSPC: NO_SPACE, errno.EDQUOT: NO_SPACE, errno.EMFILE: DESCRIPTORS, errno.ENFILE: DESCRIPTORS}


class Refusal(Exception):
    """The broker cannot start or continue: one line for the user, and the exit code."""

    def __init__(self, code: int, line: str) -> None:
        super().__init__(line)
        self.code = code


class FailStop(Exception):
    """The broker stopped itself; `__cause__` is the failure."""


def explain(error: BaseException, data_dir: Path | None = None) -> tuple[int, str]:
    """The exit code and the line for the user."""
    if isinstance(error, Refusal):
        return error.code, str(error)
    if isinstance(error, (ConfigError, UnsafeReadyFileError)):
        return USAGE, str(error)
    if isinstance(error, HeldError):
        where = f" {data_dir}" if data_dir is not None else ""
        return HELD, f"another broker uses the data directory{where}: {error}; stop it, or use another directory"
    if isinstance(error, FailStop) and error.__cause__ is not None:
        code, line = explain(error.__cause__, data_dir)
        return code, f"stopped: {line}"
    return _explain_storage(error, data_dir)


def _explain_storage(error: BaseException, data_dir: Path | None) -> tuple[int, str]:
    from broker.storage import DamageError, NewerFormatError, ReplacedError, StorageError

    if isinstance(error, ReplacedError):
        return REPLACED, str(error)
    if isinstance(error, NewerFormatError):
        return NEWER, str(error)
    if isinstance(error, DamageError):
        return DAMAGE, str(error)
    number = _errno_of(error)
    if number in LIMITS:
        cause = "no space left" if LIMITS[number] == NO_SPACE else f"too few file descriptors ({_limit()})"
        # The file may be any file, the log file for example; usually it is on the device of the data directory.
        where = f"in {data_dir}: " if data_dir is not None and str(data_dir) not in str(error) else ""
        return LIMITS[number], f"{cause}: {where}{error}"
    if isinstance(error, StorageError):
        return STORAGE, str(error)
    if isinstance(error, OSError):
        return DIRECTORY, f"cannot use {error.filename or data_dir or 'the data directory'}: {error.strerror or error}"
    return UNEXPECTED, f"failed unexpectedly: {type(error).__name__}: {error}"


def _errno_of(error: BaseException | None) -> int | None:
    """The error number at the root of a chain of causes; SQLite's FullError counts as ENOSPC."""
    while error is not None:
        if isinstance(error, OSError) and error.errno is not None:
            return error.errno
        if type(error).__name__ == "FullError":
            return errno.ENOSPC
        error = error.__cause__ or error.__context__
    return None


def _limit() -> str:
    import resource

    return f"ulimit -n is {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}"
