"""`--to-datetime` and `--by-duration` as the tool reads them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from kgctl.compat.java_errors import JavaError
from kgctl.exit_codes import USAGE

_TIME = re.compile(
    r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)(?:Z|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)?)", re.ASCII
)
# As Java's Duration reads it; kgctl's own commands accept more.
_DURATION = re.compile(
    r"(?P<sign>[-+])?P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?=[-+\d])(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}


def moment_ms(text: str) -> int:
    """Milliseconds since 1970. Raises JavaError."""
    _, found_t, second = text.partition("T")
    if not found_t:
        raise _parse_error("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
    if not any(mark in second.split("T")[0] for mark in "+-Z"):
        text += "Z"
    found = _TIME.match(text)
    try:
        if found is None:
            raise ValueError
        year, month, day, hour, minute, second_of, ms = map(int, found.groups()[:7])
        shift = timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))
        zone = timezone(-shift if found["sign"] == "-" else shift)
        if ms > 999:
            raise ValueError
        moment = datetime(year, month, day, hour, minute, second_of, ms * 1000, tzinfo=zone)
    except (ValueError, OverflowError):
        raise _parse_error(f'Unparseable date: "{text}"') from None
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def before_ms(text: str, now_ms: int) -> int:
    """The moment that lies this duration before now. Raises JavaError."""
    found = _DURATION.fullmatch(text)
    parts = {unit: float(found[unit].replace(",", ".")) for unit in _MS if found[unit]} if found else {}
    if found is None or not parts:
        kind = "java.time.format.DateTimeParseException"
        raise JavaError(kind, "Text cannot be parsed to a Duration", "BAD_VALUE", USAGE)
    duration_ms = round(sum(number * _MS[unit] for unit, number in parts.items()))
    return now_ms + duration_ms if found["sign"] == "-" else now_ms - duration_ms


def _parse_error(message: str) -> JavaError:
    return JavaError("java.text.ParseException", message, "BAD_VALUE", USAGE).rethrown()
