"""--trace: the requests of a command as JSON lines in a file, or readable on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from io import FileIO

from kgctl.client.net.tracing import Exchanged, Opened, Trace

STDERR = "-"


def open_trace(path: str, at_end: Callable[[Callable[[], None]], object]) -> Trace:
    """Raises OSError. A file that exists is replaced; `at_end` gets what closes it."""
    if path == STDERR:
        return _to_stderr
    file = open(path, "wb", buffering=0)  # noqa: SIM115 the command ends it
    at_end(file.close)
    return _ToFile(path, file)


class _ToFile:
    """Appends to a file until a write fails. The command continues: it may be in the middle of a change."""

    def __init__(self, path: str, file: FileIO) -> None:
        self._path, self._file = path, file
        self._is_broken = False

    def __call__(self, event: Opened | Exchanged) -> None:
        if self._is_broken:
            return
        try:
            # One write per line: a command that is interrupted leaves whole lines.
            self._file.write(_line(event).encode())
        except OSError as error:
            self._is_broken = True
            sys.stderr.write(f"Warning: the trace is incomplete: cannot write {self._path!r}: {error.strerror}\n")


def _line(event: Opened | Exchanged) -> str:
    values = asdict(event)
    moment = datetime.fromtimestamp(values.pop("at"), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    kind = "open" if isinstance(event, Opened) else "request"
    return json.dumps({"time": moment, "event": kind, **values}) + "\n"


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
