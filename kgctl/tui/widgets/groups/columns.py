"""The columns of the table of all groups, and the reason for each cell without a value."""

from __future__ import annotations

from collections.abc import Collection

from kgctl.model.groups import REBALANCING
from kgctl.model.health import FAULTS, NO_VERDICT, Health, attention
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column

STYLES = {
    None: "dim",
    Health.UNKNOWN: "bad",
    Health.SILENT: "bad",
    Health.STALLED: "bad",
    Health.NEVER_COMMITTED: "bad",
    Health.STOPPED: "bad",
    Health.REWOUND: "warn",
    Health.LAGGING: "warn",
    Health.REBALANCING: "warn",
    Health.OK: "dim",
    Health.UNUSED: "dim",
}
_NEEDS_TWO = "needs two refreshes"
_NO_OFFSETS = "no committed offsets are known"
_EXACT_BELOW = 10_000_000


def columns() -> list[Column[WatchedGroup]]:
    """At a width of 80, the name, the state, the lag and the health; more columns appear as the width grows."""
    return [
        Column("group", "GROUP", lambda row: cells.name(row.group), 21, flex=2, most=60, order=lambda row: row.group),
        Column("state", "STATE", _state, 19, style=_state_style, order=lambda row: row.state),
        catalogue.generation(lambda row: row.generation, order=lambda row: row.generation, priority=6),
        Column("protocol", "PROTOCOL", _protocol, 18, order=lambda row: row.protocol, priority=7),
        catalogue.number("members", "MEMBERS", lambda row: row.members, _whole, 7, 2),
        catalogue.number("lag", "LAG", lambda row: row.lag, _whole, 9),
        catalogue.rate("in", "IN/s", lambda row: row.rate_in, 4),
        catalogue.rate("out", "OUT/s", lambda row: row.rate_out, 4),
        catalogue.number("since", "SINCE", lambda row: row.rebalanced_s, _since, 7, 3),
        Column(
            "health",
            "HEALTH",
            lambda row: NO_VERDICT if row.health is None else row.health.value,
            15,
            style=lambda row: STYLES[row.health],
            order=lambda row: attention(row.health, row.uncommitted_records or row.lag, row.group),
        ),
        Column("why", "WHY", _why, 30, flex=4, most=90, style=lambda _: "dim", priority=9),
    ]


def _whole(number: int | None) -> str:
    """At most nine characters: exact below ten million, then with a unit."""
    return cells.short(number) if number is None or number >= _EXACT_BELOW else cells.count(number)


def missing(row: WatchedGroup, visible: Collection[str]) -> str:
    """Why cells in the visible columns have no value; empty if all have one."""
    if row.error is not None:
        return ""
    values = {
        "generation": ("GEN", row.generation, "this cluster does not report it"),
        "protocol": ("PROTOCOL", row.protocol, "none is chosen"),
        "lag": ("LAG", row.lag, _NO_OFFSETS),
        "in": ("IN/s", row.rate_in, _NEEDS_TWO if row.lag is not None else _NO_OFFSETS),
        "out": ("OUT/s", row.rate_out, _NEEDS_TWO if row.lag is not None else _NO_OFFSETS),
        "since": ("SINCE", row.rebalanced_s, _no_rebalance(row)),
    }
    titles: dict[str, list[str]] = {}
    for key, (title, value, reason) in values.items():
        if value is None and key in visible:
            titles.setdefault(reason, []).append(title)
    return ". ".join(f"{', '.join(some)}: {reason}" for reason, some in titles.items())


def _no_rebalance(row: WatchedGroup) -> str:
    if row.generation is None:
        return "no rebalance observed yet, and this cluster keeps no history"
    return "no rebalance observed yet" if row.generation else "the group has never rebalanced"


def facts(row: WatchedGroup, visible: Collection[str]) -> list[str]:
    """Facts about a group that no visible column shows, the most important first."""
    texts = {
        "in": f"in {cells.rate(row.rate_in)}" if row.rate_in is not None else "",
        "out": f"out {cells.rate(row.rate_out)}" if row.rate_out is not None else "",
        "since": f"rebalanced {cells.duration(row.rebalanced_s)} ago" if row.rebalanced_s else "",
        "generation": f"generation {row.generation}" if row.generation is not None else "",
        "protocol": cells.name(row.protocol) if row.protocol else "",
        "type": cells.name(row.type).lower() if row.type else "",
    }
    return [text for key, text in texts.items() if text and key not in visible]


def _state(row: WatchedGroup) -> str:
    return cells.name(row.state)


def _state_style(row: WatchedGroup) -> str:
    if row.state in REBALANCING:
        return "warn"
    return "" if row.state == "Stable" else "dim"


def _protocol(row: WatchedGroup) -> str:
    return cells.name(row.protocol)


def _since(seconds: float | None) -> str:
    return "now" if seconds == 0 else cells.duration(seconds)


def _why(row: WatchedGroup) -> str:
    return cells.name(row.health_reason) if row.health in FAULTS or row.health in (None, Health.REBALANCING) else ""
