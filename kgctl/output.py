"""Standard streams that are closed, and a stdout that cannot be written: one line instead of a traceback."""

from __future__ import annotations

import errno
import io
import os
import sys

from broker.standard_streams import STDOUT, discard, fill_closed_descriptors, guard_stderr

# Without typing and collections, which take longer to load than all else that a help page needs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The exit status of a program that SIGPIPE ended, as a shell reports it; scripts with `set -o pipefail` test for it.
BROKEN_PIPE = 141


class CannotWrite(OSError):
    """A write to stdout failed for a reason other than a closed reader, such as a full disk."""

    def __str__(self) -> str:
        return f"cannot write the output: {self.strerror}"


def guard_streams() -> None:
    """Replace the standard streams: closed descriptors are filled, write errors get a sentence, any name can be encoded.

    Filled descriptors cannot be taken by a socket or file that is opened later.
    """
    # Read-only for stdout: a write to a closed stdout fails, as in other programs.
    fill_closed_descriptors(os.O_RDONLY)
    guard_stderr()
    old = sys.stdout
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Stdout(STDOUT, "w", closefd=False)),
        encoding=old.encoding if old else None,
        errors="backslashreplace",
        # Line buffering stands in for PYTHONUNBUFFERED: the buffer below cannot be left out.
        line_buffering=bool(old and (old.line_buffering or getattr(old, "write_through", False))),
    )


class _Stdout(io.FileIO):
    def write(self, data: Any) -> Any:
        try:
            return super().write(data)
        except OSError as error:
            raise explained(error) from error


def explained(error: OSError) -> OSError:
    """A failed write to stdout as CannotWrite; a broken pipe stays as it is."""
    if error.errno == errno.EPIPE:
        return error
    discard_output()
    return CannotWrite(error.errno, error.strerror)


def discard_output() -> None:
    """Send stdout to /dev/null, or the interpreter would write again at its exit and complain."""
    discard(STDOUT, os.O_WRONLY)
