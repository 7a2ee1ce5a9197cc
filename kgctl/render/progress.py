"""Progress of a long run: lines on stderr, one of which is rewritten on a terminal, or JSON lines on stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol

from kgctl.render.table import printable

# How often the progress of a job gets a line where none can be rewritten.
EVERY_S = 60.0


class ProgressEvent(Protocol):
    """One event of a run; times in seconds."""

    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def job(self) -> str | None: ...
    @property
    def rows(self) -> int | None: ...
    @property
    def records(self) -> int | None: ...
    @property
    def records_per_s(self) -> float | None: ...
    @property
    def behind(self) -> int | None: ...
    @property
    def eta_s(self) -> float | None: ...
    def to_json(self) -> str: ...


class ProgressLine:
    """On a terminal, progress rewrites one line. Elsewhere each job gets a line at its start, at its end and every minute.

    `clock` gives seconds.
    """

    def __init__(self, json_lines: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._json, self._clock = json_lines, clock
        self._shown: dict[str | None, float] = {}
        self._live = sys.stderr.isatty()
        self._is_open = False

    def show(self, event: ProgressEvent) -> None:
        if self._json:
            sys.stdout.write(event.to_json() + "\n")
            sys.stdout.flush()
            return
        if event.kind == "progress":
            text = f"{event.job:<11} {measured(event)}"
            if self._live:
                self._rewrite(text)
            elif self._clock() - self._shown.setdefault(event.job, self._clock()) >= EVERY_S:
                self._shown[event.job] = self._clock()
                sys.stderr.write(printable(text) + "\n")
            return
        if event.kind == "job" and self._live:
            self._rewrite(f"{event.job:<11} ...")
            return
        self.close()
        if event.kind == "job":
            self._shown[event.job] = self._clock()
        sys.stderr.write(printable(_line(event)) + "\n")

    def close(self) -> None:
        """Erase the line that is being rewritten."""
        if self._is_open:
            sys.stderr.write("\r\x1b[K")
            self._is_open = False

    def _rewrite(self, text: str) -> None:
        sys.stderr.write(f"\r{printable(text)}\x1b[K")
        sys.stderr.flush()
        self._is_open = True


def measured(event: ProgressEvent) -> str:
    """Rows, rate, distance from the log end and remaining time, as far as they are known."""
    parts = [event.text] if event.text else []
    if event.rows is not None:
        parts.append(_counted(event.rows, "row"))
    if event.records is not None:
        parts.append(_counted(event.records, "record"))
    if event.records_per_s:
        parts.append(f"{event.records_per_s:,.0f} records/s")
    if event.behind is not None:
        parts.append("caught up" if not event.behind else f"{event.behind:,} behind")
    if event.eta_s:
        parts.append(f"{event.eta_s:.0f} s left")
    return ", ".join(parts)


def _line(event: ProgressEvent) -> str:
    if event.kind == "note":
        return f"Note: {event.job + ': ' if event.job else ''}{event.text}"
    if event.job is None:
        return event.text
    if event.kind == "job":
        return f"{event.job:<11} started"
    if event.kind == "done" and event.rows is not None:
        return f"{event.job:<11} done: {_counted(event.rows, 'row')} written"
    if event.kind == "done" and event.records is not None:
        return f"{event.job:<11} done: {_counted(event.records, 'record')} read"
    return f"{event.job:<11} {event.text or event.kind}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
