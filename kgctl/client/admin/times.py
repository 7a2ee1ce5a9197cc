"""Durations and times in the formats of Kafka's tools, and in the short forms that people type."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from kgctl.client.net.errors import BadValue

_DURATION = re.compile(
    r"(?P<sign>-)?P(?:(?P<days>[+-]?\d+)D)?"
    r"(?:T(?=[-+\d])(?:(?P<hours>[+-]?\d+)H)?(?:(?P<minutes>[+-]?\d+)M)?(?:(?P<seconds>[+-]?\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE | re.ASCII,
)
_MS = {"weeks": 604_800_000, "days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000, "ms": 1}
_AMOUNT = r"\d+(?:\.\d{1,9})?"
_SHORT = re.compile(
    "(?P<sign>-)?" + "".join(rf"(?:(?P<{name}>{_AMOUNT}){name if name == 'ms' else name[0]})?" for name in _MS),
    re.ASCII,
)
_NOW = re.compile(r"now(?:(?P<sign>[-+])(?P<duration>.+))?", re.ASCII)
# Milliseconds since 1970 between 1973 and 5138. Shorter numbers may be dates, or seconds by mistake.
_EPOCH_MS = re.compile(r"\d{12,14}", re.ASCII)


def duration_ms(text: str) -> int:
    """`1h30m` or `P1DT2H3M4.5S` in milliseconds; the latter with signs as in Java's Duration. Raises BadValue."""
    found = _DURATION.fullmatch(text) or _SHORT.fullmatch(text)
    values = found.groupdict() if found else {}
    parts = {name: values[name] for name in _MS if values.get(name)}
    if not found or not parts:
        raise BadValue(f"{text!r} is not a duration; write an hour and a half as 1h30m or PT1H30M.")
    try:
        total = sum(round(float(value) * _MS[name]) for name, value in parts.items())
    except OverflowError:
        raise BadValue("The duration is longer than any log.") from None
    return -total if found["sign"] else total


def moment_ms(text: str, now_ms: int) -> int:
    """A time in milliseconds since 1970: ISO 8601, milliseconds since 1970, `now`, or `now-15m`. Raises BadValue."""
    relative = _NOW.fullmatch(text)
    if relative:
        away = duration_ms(relative["duration"]) if relative["duration"] else 0
        return now_ms - away if relative["sign"] == "-" else now_ms + away
    return int(text) if _EPOCH_MS.fullmatch(text) else time_ms(text)


def time_ms(text: str) -> int:
    """An ISO 8601 time in milliseconds since 1970, UTC by default as in Kafka's tools. Raises BadValue."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        forms = "2026-01-31T12:00:00.000+01:00, as milliseconds since 1970, or as now-15m"
        raise BadValue(f"{text!r} is not a time; write it as {forms}.") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d{1,9})?)s)?(?:(\d+)ms)?", re.IGNORECASE | re.ASCII)
_SPAN_MS = (86_400_000, 3_600_000, 60_000, 1000, 1)


def span_ms(text: str) -> int:
    """`1h30m`, `45s`, `500ms` or a number of seconds in milliseconds. Raises BadValue."""
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII):
        return round(float(text) * 1000)
    found = _SPAN.fullmatch(text)
    if not text or found is None or len(text) > 40:
        raise BadValue(f"{text!r} is not a duration; 1h30m is an hour and a half, 5s are five seconds.")
    return sum(round(float(part) * factor) for part, factor in zip(found.groups(), _SPAN_MS, strict=True) if part)
