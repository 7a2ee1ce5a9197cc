"""Standard streams that a shell closed, and a stdout whose disk is full: told in one line, never as a fault of ours."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any

STDIN, STDOUT, STDERR = range(3)
# What a shell sees of a program that SIGPIPE ended; scripts with `set -o pipefail` look for it.
NOBODY_READS = 141


class CannotWrite(OSError):
    """stdout takes no more, though its reader is still there."""

    def __str__(self) -> str:
        return f"cannot write the output: {self.strerror}"


def guard_streams() -> None:
    """Fill closed descriptors, so that no socket or file becomes a standard stream, and let stdout say what ails it.

    A name in another alphabet must not stop the table on a terminal that cannot show it, either.
    """
    for number, stream in ((STDIN, sys.stdin), (STDOUT, sys.stdout), (STDERR, sys.stderr)):
        if stream is None:
            # Only for reading: what is written to a closed stdout fails, as it does in other programs.
            _fill(number, os.O_WRONLY if number == STDERR else os.O_RDONLY)
    errors = sys.stderr
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Stderr(STDERR, "w", closefd=False)),
        encoding=errors.encoding if errors else None,
        errors="backslashreplace",
        line_buffering=True,
    )
    old = sys.stdout
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Stdout(STDOUT, "w", closefd=False)),
        encoding=old.encoding if old else None,
        errors="backslashreplace",
        # Who wants nothing held back gets lines: there is a buffer below this one.
        line_buffering=bool(old and (old.line_buffering or getattr(old, "write_through", False))),
    )


class _Stdout(io.FileIO):
    def write(self, data: Any) -> Any:
        try:
            return super().write(data)
        except OSError as error:
            raise explained(error) from error


class _Stderr(io.FileIO):
    """What nobody can be told is dropped: the exit code still tells how it went."""

    def write(self, data: Any) -> Any:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def explained(error: OSError) -> OSError:
    """The error of a write to stdout, as CannotWrite; a reader that has gone stays what it is."""
    if error.errno == errno.EPIPE:
        return error
    forget_output()
    return CannotWrite(error.errno, error.strerror)


def forget_output() -> None:
    """From now on stdout is nowhere: the interpreter would else try again at its end, and complain."""
    _fill(STDOUT, os.O_WRONLY)


def _fill(number: int, flags: int) -> None:
    nowhere = os.open(os.devnull, flags)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
