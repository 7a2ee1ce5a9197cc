"""Ctrl-C and SIGTERM as an orderly end: they interrupt a wait, never the work between two waits."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType, TracebackType


class Interrupted(Exception):
    """The user wants to end."""


class Interruption:
    """While it is entered, the first signal ends the wait that is marked as interruptible, or the next one that is.

    Who waits for descriptors may instead wait for `fileno` as well: it can be read once the signal has come.
    A second Ctrl-C is a KeyboardInterrupt wherever it strikes. Outside of the main thread it does nothing.
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
        """Raises Interrupted out of the block, or before it if the signal has come already."""
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
