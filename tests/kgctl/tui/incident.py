"""Snapshots in which things happen: rebalances, a silent member, a restart, new and deleted groups."""

from __future__ import annotations

from broker.light_dataclasses import replace
from kgctl.model.groups import GroupDescription
from kgctl.model.history import GroupEventRow
from kgctl.model.watched import Snapshot
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.group_snapshots import WALL_MS, history

NOW_MS = snapshots.NOW_MS
BORN_MS, REBORN_MS = NOW_MS - 7_200_000, NOW_MS + 50_000


def incident() -> list[Snapshot]:
    """Four snapshots, 30 s apart. The history of checkout is known from the first one on."""
    first = [_group("billing"), _group("checkout"), _group("hourly-report"), _group("fraud-detection")]
    silent = [_group("billing", silent_ms=31_000), *first[1:]]
    later = [*silent, _group("nightly")]
    last = [one for one in later if one.group != "hourly-report"]
    return [
        _snapshot(first, 0, BORN_MS, _history()),
        _snapshot(silent, 30, BORN_MS),
        _snapshot(later, 60, REBORN_MS),
        _snapshot(last, 90, REBORN_MS),
    ]


def _group(name: str, silent_ms: int = 900) -> GroupDescription:
    return snapshots.group(name, silent_ms=silent_ms)


def _history() -> tuple[GroupEventRow, ...]:
    return tuple(replace(row, group="checkout", timestamp=row.timestamp - WALL_MS + NOW_MS) for row in history())


def _snapshot(
    groups: list[GroupDescription], after_s: float, born_ms: int, events: tuple[GroupEventRow, ...] = ()
) -> Snapshot:
    described = [replace(one, broker_started_ms=born_ms, coordinator_id=1) for one in groups]
    return replace(snapshots.snapshot(described, after_s), events=events)
