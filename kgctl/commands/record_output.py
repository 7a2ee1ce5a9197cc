"""Bytes to stdout as soon as they are there, without being stuck in a full pipe, and noticing when nobody reads any more."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable

from kgctl.commands.interruption import Interruption
from kgctl.output import explained

# A pipe that is writable takes this much at once (POSIX: PIPE_BUF is at least 512, 4096 on Linux, 512 on macOS).
_PIPE_BYTES = select.PIPE_BUF
_FILE_BYTES = 1 << 20
_TEND_SECONDS = 0.2


class RecordOutput:
    """Raises BrokenPipeError when the reader is gone, CannotWrite when there is no room."""

    def __init__(self, interruption: Interruption) -> None:
        self._interruption = interruption
        sys.stdout.flush()
        try:
            self._fileno: int | None = sys.stdout.fileno()
        except (OSError, ValueError):  # a stream of a test
            self._fileno = None
        self._never_blocks = self._fileno is None or stat.S_ISREG(os.fstat(self._fileno).st_mode)

    @property
    def broken_fileno(self) -> int | None:
        """To be watched while there is nothing to write; None where a broken end cannot be seen."""
        return None if self._never_blocks else self._fileno

    def write(self, text: bytes, meanwhile: Callable[[], None]) -> None:
        """Write all of it; as long as the reader is slow, `meanwhile` is called every now and then.

        Interrupted only while the reader is slow: a text that was begun is otherwise written whole.
        """
        if self._fileno is None:
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()
            return
        rest = memoryview(text)
        while rest:
            if not self._never_blocks:
                self._wait(meanwhile)
            try:
                written = os.write(self._fileno, rest[: _FILE_BYTES if self._never_blocks else _PIPE_BYTES])
            except OSError as error:
                raise explained(error) from error
            rest = rest[written:]

    def _wait(self, meanwhile: Callable[[], None]) -> None:
        assert self._fileno is not None
        poll = select.poll()
        poll.register(self._fileno, select.POLLOUT)
        if poll.poll(0):
            return
        with self._interruption.may_interrupt():
            while not poll.poll(_TEND_SECONDS * 1000):
                meanwhile()
