"""How far a query is behind the ends of its logs, from Spark's progress events.

Spark's connector reports minOffsetsBehindLatest, maxOffsetsBehindLatest and avgOffsetsBehindLatest among the metrics of a
source. A source in Python cannot report metrics, but Spark asks it for the ends of the logs, from which they follow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# topic, partition, offset
Offsets = dict[str, dict[int, int]]


@dataclass(frozen=True, slots=True)
class Behind:
    """Offsets behind the ends of the logs, {topic: {partition: offsets}}, after one batch of one source."""

    partitions: Offsets

    @property
    def total(self) -> int:
        return sum(self._all())

    def waiting(self) -> dict[str, dict[str, int]]:
        """As JSON, without the partitions that are at the end of their logs."""
        some = {topic: {str(part): n for part, n in parts.items() if n} for topic, parts in self.partitions.items()}
        return {topic: parts for topic, parts in some.items() if parts}

    def metrics(self) -> dict[str, str]:
        """The names and texts of the connector's metrics; empty if there are no partitions."""
        found = self._all()
        if not found:
            return {}
        return {
            "minOffsetsBehindLatest": str(min(found)),
            "maxOffsetsBehindLatest": str(max(found)),
            "avgOffsetsBehindLatest": str(sum(found) / len(found)),
        }

    def _all(self) -> list[int]:
        return [offsets for some in self.partitions.values() for offsets in some.values()]


def behind_latest(source: Mapping[str, Any]) -> Behind | None:
    """For one of the `sources` of a progress event, as JSON; None before Spark has asked for the ends of the logs."""
    latest, reached = offsets_of(source.get("latestOffset")), offsets_of(source.get("endOffset"))
    if not latest:
        return None
    return Behind(
        {
            topic: {part: max(0, end - reached.get(topic, {}).get(part, 0)) for part, end in parts.items()}
            for topic, parts in latest.items()
        }
    )


def offsets_of(value: Any) -> Offsets:
    """Spark gives offsets as JSON text or as an object, and null before the first batch."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, dict):
        return {}
    return {topic: {int(part): int(offset) for part, offset in parts.items()} for topic, parts in value.items()}
