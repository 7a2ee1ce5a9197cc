"""auto.offset.reset: where a consumer starts in a partition without an offset, or with one that the log does not have."""

from __future__ import annotations

import re

from broker.light_named_tuples import NamedTuple
from kgctl.client.net.errors import BadValue

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1
_PREFIX = "by_duration:"
_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:[.,]\d{0,9})?)S)?)?", re.I
)


class ResetStrategy(NamedTuple):
    """`kind` is none, earliest, latest or by_duration (KIP-1106)."""

    kind: str
    duration_ms: int = 0

    def timestamp(self, wall_ms: int) -> int:
        """The timestamp for ListOffsets. Raises ValueError for `none`."""
        if self.kind == "by_duration":
            return max(0, wall_ms - self.duration_ms)
        return {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}[self.kind]

    def __str__(self) -> str:
        return f"{_PREFIX}{self.duration_ms} ms" if self.duration_ms else self.kind


NONE = ResetStrategy("none")
EARLIEST = ResetStrategy("earliest")
LATEST = ResetStrategy("latest")


def parse(text: str) -> ResetStrategy:
    """Read none, earliest, latest or by_duration:<ISO 8601 duration> such as by_duration:P1DT12H."""
    value = text.strip().lower()
    if value in ("none", "earliest", "latest"):
        return ResetStrategy(value)
    if value.startswith(_PREFIX):
        return ResetStrategy("by_duration", _milliseconds(text.strip()[len(_PREFIX) :]))
    raise BadValue(
        f"auto.offset.reset={text!r} is not one of none, earliest, latest, by_duration:PnDTnHnMnS (by_duration:PT1H)"
    )


def _milliseconds(text: str) -> int:
    found = _DURATION.fullmatch(text)
    parts = {
        name: float((value or "0").replace(",", ".")) for name, value in (found.groupdict() if found else {}).items()
    }
    if found is None or not any(found.groupdict().values()) or text.upper().endswith("T"):
        raise BadValue(
            f"auto.offset.reset: {text!r} is not an ISO 8601 duration of days, hours, minutes and seconds (PT1H)"
        )
    seconds = ((parts["days"] * 24 + parts["hours"]) * 60 + parts["minutes"]) * 60 + parts["seconds"]
    return round(seconds * 1000)
