"""--trace: the requests of a command as JSON lines in a file, or readable on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TextIO

from kgctl.client.net.tracing import Exchanged, Opened, Trace

STDERR = "-"


def open_trace(path: str, at_end: Callable[[Callable[[], None]], object]) -> Trace:
    """Raises OSError. A file that exists is replaced; `at_end` gets what closes it."""
    if path == STDERR:
        return _to_stderr
    file = open(path, "w", encoding="utf-8")  # noqa: SIM115 the command ends it
    at_end(file.close)
    return lambda event: _to_file(file, event)


def _to_file(file: TextIO, event: Opened | Exchanged) -> None:
    values = asdict(event)
    moment = datetime.fromtimestamp(values.pop("at"), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    kind = "open" if isinstance(event, Opened) else "request"
    # One write per line: a command that is interrupted leaves whole lines.
    file.write(json.dumps({"time": moment, "event": kind, **values}) + "\n")
    file.flush()


def _to_stderr(event: Opened | Exchanged) -> None:
    if isinstance(event, Opened):
        steps = ", ".join(f"{name} {ms:.1f}" for name, ms in event.steps.items())
        text = f"{'connection':<28} {'':>10} {'':>10} {event.ms:>9.1f} ms  ({steps})"
    else:
        answer = "-" if event.response_bytes is None else f"{event.response_bytes:,}"
        ms = "-" if event.ms is None else f"{event.ms:.1f}"
        name = f"{event.api} v{event.version}"
        text = f"{name:<28} {event.request_bytes:>8,} B {answer:>8} B {ms:>9} ms"
    failed = f"  {event.error}" if event.error else ""
    sys.stderr.write(f"{event.node:<21} {text}{failed}\n")
