"""What a long run tells while it goes on: lines on stderr, one that is rewritten on a terminal, or JSON on stdout."""

from __future__ import annotations

import sys
from typing import Protocol

from kgctl.render.table import printable


class Told(Protocol):
    """One step of a run; times in seconds."""

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
    """On a terminal progress rewrites its line; elsewhere only beginnings and ends are told, a line each."""

    def __init__(self, json_lines: bool) -> None:
        self._json = json_lines
        self._live = sys.stderr.isatty()
        self._is_open = False

    def tell(self, told: Told) -> None:
        if self._json:
            sys.stdout.write(told.to_json() + "\n")
            sys.stdout.flush()
            return
        if told.kind == "progress":
            self._rewrite(f"{told.job:<11} {measured(told)}")
            return
        if told.kind == "job" and self._live:
            self._rewrite(f"{told.job:<11} ...")
            return
        self.close()
        sys.stderr.write(printable(_line(told)) + "\n")

    def close(self) -> None:
        """Take the line away that is being rewritten."""
        if self._is_open:
            sys.stderr.write("\r\x1b[K")
            self._is_open = False

    def _rewrite(self, text: str) -> None:
        if self._live:
            sys.stderr.write(f"\r{printable(text)}\x1b[K")
            sys.stderr.flush()
            self._is_open = True


def measured(told: Told) -> str:
    """Rows, rate, distance to the head and time to get there, as far as they are known."""
    parts = [told.text] if told.text else []
    if told.rows is not None:
        parts.append(_counted(told.rows, "row"))
    if told.records is not None:
        parts.append(_counted(told.records, "record"))
    if told.records_per_s:
        parts.append(f"{told.records_per_s:,.0f} records/s")
    if told.behind is not None:
        parts.append("at the head" if not told.behind else f"{told.behind:,} behind")
    if told.eta_s:
        parts.append(f"{told.eta_s:.0f} s to go")
    return ", ".join(parts)


def _line(told: Told) -> str:
    if told.kind == "note":
        return f"Note: {told.job + ': ' if told.job else ''}{told.text}"
    if told.job is None:
        return told.text
    if told.kind == "job":
        return f"{told.job:<11} begins"
    if told.kind == "done" and told.rows is not None:
        return f"{told.job:<11} done: {_counted(told.rows, 'row')} written"
    if told.kind == "done" and told.records is not None:
        return f"{told.job:<11} done: {_counted(told.records, 'record')} read"
    return f"{told.job:<11} {told.text or told.kind}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
