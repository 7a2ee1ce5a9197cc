"""When the records at the old and the new offsets of a plan were written: for small plans only, because it fetches records."""

from __future__ import annotations

from collections.abc import Sequence

from broker.light_dataclasses import replace
from kgctl.client.admin.record_times import Position, record_times
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.changes import ResetPlan, ResetRow

MOST_POSITIONS = 60
# Producers choose timestamps freely; later ones are no dates.
_YEAR_10000_MS = 253_402_300_800_000


def with_record_times(cluster: Cluster, plans: Sequence[ResetPlan]) -> Steps[list[ResetPlan]]:
    """The same plans without times if they have too many positions, or if the records cannot be read."""
    wanted = {place for plan in plans for row in plan.rows for place in (_old(row), _new(row)) if place}
    if not 0 < len(wanted) <= MOST_POSITIONS:
        return list(plans)
    try:
        times = yield from record_times(cluster, sorted(wanted))
    except KgctlError:
        return list(plans)
    return [
        replace(
            plan,
            rows=tuple(
                replace(row, old_timestamp=_at(times, _old(row)), new_timestamp=_at(times, _new(row)))
                for row in plan.rows
            ),
        )
        for plan in plans
    ]


def _old(row: ResetRow) -> Position | None:
    return _position(row, row.old_offset)


def _new(row: ResetRow) -> Position | None:
    return _position(row, row.new_offset)


def _position(row: ResetRow, offset: int | None) -> Position | None:
    return None if row.partition is None or offset is None else (row.topic, row.partition, offset)


def _at(times: dict[Position, int | None], place: Position | None) -> int | None:
    time = times.get(place) if place else None
    return time if time is not None and 0 <= time < _YEAR_10000_MS else None
