"""Formats values as the text of a cell: numbers with units, durations, and names made safe for a terminal."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells, set_cell_size

from kgctl.render.table import MISSING, printable

_SECONDS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def name(text: str | None) -> str:
    """A name that a client chose, without terminal control sequences; `-` if there is none."""
    return printable(text) if text else MISSING


def count(number: int | None) -> str:
    return MISSING if number is None else f"{number:,}"


def whole(number: int | None, width: int) -> str:
    """All digits if they fit, else at most six characters: cutting the last digits would change the value."""
    text = count(number)
    return text if len(text) <= width else short(number)


def short(number: float | None) -> str:
    """At most six characters: 999, 12.3k, 4.5M."""
    if number is None:
        return MISSING
    sign, size = ("-" if number < 0 else ""), abs(number)
    for limit, divisor, unit in ((1e4, 1, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M"), (1e12, 1e9, "G")):
        # A value that would round up to the limit takes the next unit.
        if round(size / divisor, 1) * divisor < limit:
            value = size / divisor
            return sign + (f"{value:.0f}" if not unit or value >= 100 else f"{value:.1f}") + unit
    return f"{sign}{size / 1e12:.3g}T"


def size(octets: int | None) -> str:
    """At most six characters: 999B, 12.3kB, 4.5MB."""
    return MISSING if octets is None else f"{short(octets)}B"


def rate(per_second: float | None) -> str:
    """Records/s, at most eight characters: 0/s, 0.4/s, 12.3k/s."""
    if per_second is None:
        return MISSING
    if 0 < abs(per_second) < 9.95:
        return f"{per_second:.1f}/s"
    return f"{short(per_second)}/s"


def duration(seconds: float | None) -> str:
    """A duration in at most seven characters: 40 ms, 3.4 s, 12 min, 2 h, 5 d."""
    if seconds is None:
        return MISSING
    if 0 < seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return (f"{seconds:.1f}".removesuffix(".0") if seconds < 9.95 else f"{seconds:.0f}") + " s"
    for size, unit in _SECONDS:
        if seconds >= size or unit == "min":
            return f"{seconds / size:.0f} {unit}"
    raise AssertionError(seconds)


def age(seconds: float | None) -> str:
    """A duration in at most five characters, for columns: 40ms, 1.8s, 12s, 10m, 3h, 5d."""
    return duration(seconds).replace(" min", "m").replace(" ", "")


def milliseconds(span_ms: float | None) -> str:
    return duration(None if span_ms is None else span_ms / 1000)


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """The text in exactly `width` columns of a terminal; an ellipsis ends a text that does not fit."""
    length = cell_len(text)
    if length > width:
        head = chop_cells(text, width - 1)[0] if width > 1 else ""
        return set_cell_size(head + "\u2026", width) if width > 0 else ""
    return " " * (width - length) + text if right else text + " " * (width - length)
