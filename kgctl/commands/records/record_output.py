"""Writes records to stdout at once, without blocking on a full pipe, and detects a reader that has gone."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable

from kgctl.commands.shared.interruption import Interruption
from kgctl.output import explained

# A writable pipe accepts this much without blocking (POSIX: PIPE_BUF is at least 512; 4096 on Linux, 512 on macOS).
_PIPE_BYTES = select.PIPE_BUF
_FILE_BYTES = 1 << 20
_MEANWHILE_SECONDS = 0.2


class RecordOutput:
    """Raises BrokenPipeError once the reader has gone, CannotWrite when the disk is full."""

    def __init__(self, interruption: Interruption) -> None:
        self._interruption = interruption
        sys.stdout.flush()
        try:
            self._fileno: int | None = sys.stdout.fileno()
        except (OSError, ValueError):  # an in-memory stream
            self._fileno = None
        self._never_blocks = self._fileno is None or stat.S_ISREG(os.fstat(self._fileno).st_mode)

    @property
    def pipe_fileno(self) -> int | None:
        """A descriptor to watch for a hang-up while there is nothing to write; None for a file."""
        return None if self._never_blocks else self._fileno

    def check_reader(self) -> None:
        """Raise BrokenPipeError if the reader of the pipe has gone."""
        if self._fileno is None or self._never_blocks:
            return
        poll = select.poll()
        poll.register(self._fileno, 0)
        if poll.poll(0):
            raise BrokenPipeError

    def write(self, text: bytes, meanwhile: Callable[[], None]) -> None:
        """Write the whole text. Calls `meanwhile` regularly while the reader is slow.

        A signal interrupts only a wait for a slow reader; otherwise the text is written completely.
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
            while not poll.poll(_MEANWHILE_SECONDS * 1000):
                meanwhile()
