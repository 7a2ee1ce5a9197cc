"""Formats numbers for sentences: durations, rates, counts."""

from __future__ import annotations


def span(seconds: float) -> str:
    """A duration in the largest unit that fits: "0.4 s", "42 s", "12 min", "3 h", "5 d"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    for unit_s, unit, until in ((1, "s", 120), (60, "min", 7_200), (3_600, "h", 172_800)):
        if seconds < until:
            return f"{seconds / unit_s:.0f} {unit}"
    return f"{seconds / 86_400:,.0f} d"


def rate(per_s: float) -> str:
    """Records/s: "0.5/s", "1,200/s"."""
    return f"{per_s:,.1f}/s" if per_s < 9.95 else f"{per_s:,.0f}/s"


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 member", "1,200 members"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def counted_are(number: int, noun: str) -> str:
    """With the verb: "1 record is", "1,200 records are"."""
    return f"{counted(number, noun)} {'is' if number == 1 else 'are'}"
