"""The columns of the table of all groups, and the reason for each cell without a value."""

from __future__ import annotations

from collections.abc import Collection

from kgctl.model.groups import REBALANCING
from kgctl.model.health import Health, attention
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column

_NEEDS_TWO = "needs two refreshes"
_NO_OFFSETS = "no committed offsets are known"
_EXACT_BELOW = 10_000_000
SHORT_STATES = {
    "PreparingRebalance": ("Preparing", "Prepar."),
    "CompletingRebalance": ("Completing", "Complet."),
    "Assigning": ("Assigning", "Assign."),
    "Reconciling": ("Reconciling", "Reconc."),
}


def columns() -> list[Column[WatchedGroup]]:
    """At a width of 80, the name, the state, the lag and why; more columns appear as the width grows."""
    return [
        Column("group", "GROUP", _name, 15, flex=4, most=60, style=_unused, order=lambda row: row.group),
        Column(
            "verdict",
            "VERDICT",
            lambda row: _verdict(row).upper() if row.health else _verdict(row),
            15,
            order=urgency,
            falling=True,
            priority=9,
        ),
        Column(
            "state", "STATE", _state, 8, flex=1, most=11, style=_state_style, order=lambda row: row.state, drawn=state
        ),
        catalogue.generation(lambda row: row.generation, order=lambda row: row.generation, priority=8),
        Column(
            "protocol", "PROTOCOL", _protocol, 18, style=lambda _: "dim", order=lambda row: row.protocol, priority=10
        ),
        catalogue.number("members", "MBR", lambda row: row.members, _whole, 3, 2),
        catalogue.number("lag", "LAG", lambda row: row.lag, _whole, 9),
        catalogue.rate("in", "IN/s", lambda row: row.rate_in, 5),
        catalogue.rate("out", "OUT/s", lambda row: row.rate_out, 4),
        catalogue.number("since", "SINCE", lambda row: row.rebalanced_s, _since, 5, 7),
        Column("why", "WHY", why, 20, flex=6, most=120, style=_unused),
    ]


def urgency(row: WatchedGroup) -> tuple[int, int]:
    """A sort key: the group that needs attention most is the largest."""
    rank, lag, _ = attention(row.health, row.uncommitted_records or row.lag, row.group)
    return -rank, -lag


def why(row: WatchedGroup) -> str:
    """The verdict and its reason; nothing for groups that are well."""
    if row.health is Health.OK:
        return ""
    reason = cells.name(row.health_reason)
    return reason if row.health is None else f"{_verdict(row)}: {reason}"


def state(row: WatchedGroup, width: int) -> str:
    """The longest form of the state that fits."""
    found = _state(row)
    return next((text for text in (found, *SHORT_STATES.get(found, ())) if len(text) <= width), found)


def _name(row: WatchedGroup) -> str:
    return cells.name(row.group)


def _verdict(row: WatchedGroup) -> str:
    return "judging" if row.health is None else row.health.value.lower()


def _unused(row: WatchedGroup) -> str:
    return "dim" if row.health is Health.UNUSED else ""


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
    return "now" if seconds == 0 else cells.age(seconds)
