"""Durations as conditions write them: `30s`, `1h30m`, `500ms`."""

from __future__ import annotations

import re

_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_DURATION = re.compile("".join(rf"(?:(\d{{1,9}}){unit})?" for unit in _UNITS), re.ASCII)


def parse_ms(text: str) -> int | None:
    """Milliseconds, None if the text is not a duration."""
    found = _DURATION.fullmatch(text) if text else None
    if found is None:
        return None
    return sum(int(part) * factor for part, factor in zip(found.groups(), _UNITS.values(), strict=True) if part)


def text_of_ms(milliseconds: int) -> str:
    """The shortest text that `parse_ms` reads as the same duration."""
    parts, rest = [], milliseconds
    for unit, factor in _UNITS.items():
        count, rest = divmod(rest, factor)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"
