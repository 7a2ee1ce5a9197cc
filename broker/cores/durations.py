"""Durations as Java's `Duration.parse` reads them: ISO 8601 with days, hours, minutes and seconds."""

from __future__ import annotations

import re

_NUMBER = r"([+-]?[0-9]{1,19})"
_DURATION = re.compile(
    rf"([+-]?)P(?:{_NUMBER}D)?(T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}(?:[.,]([0-9]{{0,9}}))?S)?)?", re.IGNORECASE
)
_NS_PER_SECOND = 10**9
# Of a duration in seconds.
_MOST = 2**63 - 1


def parse_duration(text: str) -> int | None:
    """The duration in nanoseconds, which may be negative; None if the text is no duration."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    sign, days, of_day, hours, minutes, seconds, fraction = found.groups()
    if of_day is not None and len(of_day) == 1:
        return None
    if days is hours is minutes is seconds is None:
        return None
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    if not -_MOST <= whole <= _MOST:
        return None
    part = int((fraction or "0").ljust(9, "0"))
    ns = whole * _NS_PER_SECOND + (-part if (seconds or "").startswith("-") else part)
    return -ns if sign == "-" else ns
