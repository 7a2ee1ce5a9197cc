"""`--to-datetime` and `--by-duration` as the tool reads them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

from kgctl.client.admin.times import duration_ms
from kgctl.client.net.errors import BadValue
from kgctl.compat.java_errors import JavaError
from kgctl.exit_codes import USAGE

_TIME = re.compile(
    r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)(?:Z|(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)?)", re.ASCII
)


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
    try:
        return now_ms - duration_ms(text)
    except BadValue:
        kind = "java.time.format.DateTimeParseException"
        raise JavaError(kind, "Text cannot be parsed to a Duration", "BAD_VALUE", USAGE) from None


def _parse_error(message: str) -> JavaError:
    return JavaError("java.text.ParseException", message, "BAD_VALUE", USAGE).rethrown()
