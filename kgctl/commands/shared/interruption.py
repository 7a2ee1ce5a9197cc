"""Ctrl-C and SIGTERM as an orderly end: they interrupt waits, never the work between two waits."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType, TracebackType


class Interrupted(Exception):
    """A signal asked the command to end."""


class Interruption:
    """In a `with`: the first signal interrupts the current or the next wait that is marked as interruptible.

    Code that waits for descriptors can add `fileno`, which is readable once a signal has arrived. A second Ctrl-C raises
    KeyboardInterrupt at once. Has no effect outside of the main thread.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._ends: tuple[int, int] | None = None
        self._waiting = False
        self._old: dict[signal.Signals, object] = {}

    @property
    def requested(self) -> bool:
        return self.signal is not None

    @property
    def fileno(self) -> int:
        assert self._ends is not None, "not entered"
        return self._ends[0]

    def __enter__(self) -> Interruption:
        self._ends = os.pipe()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):
                self._old[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            # None: the old handler was not set by Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # type: ignore[arg-type]
        for end in self._ends or ():
            os.close(end)
        self._ends = None

    @contextlib.contextmanager
    def may_interrupt(self) -> Iterator[None]:
        """Raises Interrupted from the block, or before it if a signal has already arrived."""
        self._waiting = True
        try:
            if self.requested:
                raise Interrupted
            yield
        finally:
            self._waiting = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)
        if self._ends is not None:
            os.write(self._ends[1], b"!")
        if self._waiting:
            self._waiting = False
            raise Interrupted
