"""Standard streams that are closed or cannot be written: they change neither an exit code nor a file opened later."""

from __future__ import annotations

import io
import os
import sys

# Without typing and collections, which take longer to load than all else that a help page needs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STDIN, STDOUT, STDERR = range(3)


def guard_stderr() -> None:
    """Drop what cannot be written to stderr: the exit code still reports the outcome."""
    old = sys.stderr
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Stderr(STDERR, "w", closefd=False)),
        encoding=old.encoding if old else None,
        errors="backslashreplace",
        line_buffering=True,
    )


class _Stderr(io.FileIO):
    def write(self, data: Any) -> Any:
        try:
            written = super().write(data)
        except OSError:
            written = None
        # None also means a full pipe or terminal that another program has made non-blocking.
        return len(data) if written is None else written


def fill_closed_descriptors(flags_of_stdout: int = os.O_WRONLY) -> None:
    """Open /dev/null in place of closed standard streams, or the next file or socket would take their descriptors."""
    for number, flags in ((STDIN, os.O_RDONLY), (STDOUT, flags_of_stdout), (STDERR, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            discard(number, flags)


def discard(number: int, flags: int) -> None:
    """Make a descriptor one of /dev/null."""
    nowhere = os.open(os.devnull, flags)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
    os.set_inheritable(number, True)
