"""What a start of the broker shows: its progress, its failure, the broker that runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kgctl import exit_codes
from kgctl.client.net.errors import KgctlError
from kgctl.commands.broker.log_lines import parse_log_line
from kgctl.commands.broker.security import keep_context
from kgctl.commands.broker.state import row_of, show_row
from kgctl.render import note

if TYPE_CHECKING:
    from broker.local import BrokerFailed, Ready
    from kgctl.commands.shared.settings import Settings

PROGRESS_INTERVAL_S = 1.0


class StartFailed(KgctlError):
    """The broker's own error message, with the matching exit code."""

    def __init__(self, failure: BrokerFailed) -> None:
        code = failure.code
        super().__init__(str(failure) if code is not None else f"{failure}; --timeout allows more")
        self.exit_code = exit_codes.TIMED_OUT if code is None else code if code > 0 else 1


def progress_notes() -> Callable[[str], None]:
    """A function that shows log lines on stderr, at most one per second; a fast start shows none."""
    shown_at = time.monotonic()

    def show_line(line: str) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at >= PROGRESS_INTERVAL_S:
            shown_at = time.monotonic()
            note(parse_log_line(line).message)

    return show_line


def show_started(chosen: Settings, ready: Ready, warnings: Iterable[str], *, is_default: bool) -> None:
    """The broker that serves now. `is_default`: in the default data directory."""
    for line in warnings:
        note(f"Warning: {parse_log_line(line).message}")
    show_row(chosen, row_of(ready))
    keep_context(ready, is_default=is_default)
