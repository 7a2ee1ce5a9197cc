"""The line that says how far a measurement is."""

from __future__ import annotations

import time
from collections.abc import Callable

_SHOWN_EVERY_S = 0.1


class Progress:
    """`of` is the number of records in the end, if it is known. Times are those of time.perf_counter."""

    def __init__(self, show: Callable[[str], None], verb: str, of: int | None) -> None:
        self._show, self._verb, self._of = show, verb, of
        self._began = self._shown = time.perf_counter()

    def note(self, records: int, now: float) -> None:
        """Show the line if the last one is a tenth of a second old."""
        if now - self._shown < _SHOWN_EVERY_S:
            return
        self._shown = now
        seconds, of = now - self._began, self._of
        share = f" of {of:,} ({records * 100 // of} %)" if of else ""
        self._show(f"{self._verb} {records:,} records{share}, {records / seconds:,.0f}/s, {seconds:.0f} s")
