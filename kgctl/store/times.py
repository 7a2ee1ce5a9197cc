"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(ms: int | None) -> str | None:
    """UTC with milliseconds; None if the time is not known, or none that a calendar has."""
    if ms is None or ms < 0:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None
