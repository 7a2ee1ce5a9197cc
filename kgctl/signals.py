"""Ignore signals while a process cleans up or ends."""

from __future__ import annotations

import signal


def ignore(*numbers: signal.Signals) -> None:
    """Ignore these signals from now on, and also those that Python has received but not handled yet.

    With `signal.SIG_IGN`, CPython raises OSError ("ignored due to race condition") for the latter.
    """
    for number in numbers:
        signal.signal(number, lambda *_: None)
