"""The columns of the table of all groups, and what a cell without a value keeps quiet about."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kgctl.model.groups import REBALANCING
from kgctl.model.watched import Verdict, WatchedGroup
from kgctl.render.table import MISSING
from kgctl.tui import cells
from kgctl.tui.widgets.columns import Column

WORST_FIRST = (
    Verdict.ERROR,
    Verdict.DEAD_MEMBERS,
    Verdict.STUCK,
    Verdict.LAGGING,
    Verdict.REBALANCING,
    Verdict.OK,
)
STYLES = {
    Verdict.ERROR: "bad",
    Verdict.DEAD_MEMBERS: "bad",
    Verdict.STUCK: "bad",
    Verdict.LAGGING: "warn",
    Verdict.REBALANCING: "warn",
    Verdict.OK: "dim",
}
_RANKS = {verdict: rank for rank, verdict in enumerate(WORST_FIRST)}
_TWO_LOOKS = "takes two looks at its offsets"
_NO_OFFSETS = "no committed offsets are known"
_EXACT_BELOW = 10_000_000


def columns() -> list[Column[WatchedGroup]]:
    """In 80 cells a name, what is wrong and by how much; the rest comes with the room."""
    return [
        Column("group", "GROUP", lambda row: cells.name(row.group), 21, flex=2, most=60, order=lambda row: row.group),
        Column("state", "STATE", _state, 19, style=_state_style, order=lambda row: row.state),
        Column("generation", "GEN", _generation, 6, right=True, order=lambda row: row.generation, priority=6),
        Column("protocol", "PROTOCOL", _protocol, 18, order=lambda row: row.protocol, priority=7),
        _figure("members", "MEMBERS", 7, _whole, lambda row: row.members, 2),
        _figure("lag", "LAG", 9, _whole, lambda row: row.lag, 0),
        _figure("in", "IN/s", 6, _rate, lambda row: row.rate_in, 4),
        _figure("out", "OUT/s", 6, _rate, lambda row: row.rate_out, 4),
        _figure("since", "SINCE", 7, _since, lambda row: row.rebalanced_s, 3),
        Column(
            "verdict",
            "VERDICT",
            lambda row: row.verdict.value,
            13,
            style=lambda row: STYLES[row.verdict],
            order=lambda row: _RANKS[row.verdict],
        ),
        Column("why", "WHY", _why, 30, flex=4, most=90, style=lambda _: "dim", priority=9),
    ]


def _whole(number: float | None) -> str:
    """At most nine characters: exact below ten million, then with a unit."""
    if number is None or number >= _EXACT_BELOW:
        return cells.short(number)
    return cells.count(int(number))


def missing(row: WatchedGroup, seen: Collection[str]) -> str:
    """Why those of its cells that are seen have no value; empty if all have one."""
    if row.error is not None:
        return ""
    cells_of = {
        "generation": ("GEN", row.generation, "this cluster tells it to nobody"),
        "protocol": ("PROTOCOL", row.protocol, "none is chosen"),
        "lag": ("LAG", row.lag, _NO_OFFSETS),
        "in": ("IN/s", row.rate_in, _TWO_LOOKS if row.lag is not None else _NO_OFFSETS),
        "out": ("OUT/s", row.rate_out, _TWO_LOOKS if row.lag is not None else _NO_OFFSETS),
        "since": ("SINCE", row.rebalanced_s, _no_rebalance(row)),
    }
    titles: dict[str, list[str]] = {}
    for key, (title, value, reason) in cells_of.items():
        if value is None and key in seen:
            titles.setdefault(reason, []).append(title)
    return ". ".join(f"{', '.join(some)}: {reason}" for reason, some in titles.items())


def _no_rebalance(row: WatchedGroup) -> str:
    if row.generation is None:
        return "no rebalance was seen so far, and this cluster keeps no record"
    return "no rebalance was seen so far" if row.generation else "it never rebalanced"


def facts(row: WatchedGroup, seen: Collection[str]) -> list[str]:
    """What is known of a group and stands in no column that is seen, what says most first."""
    told = {
        "in": f"in {cells.rate(row.rate_in)}" if row.rate_in is not None else "",
        "out": f"out {cells.rate(row.rate_out)}" if row.rate_out is not None else "",
        "since": f"rebalanced {cells.duration(row.rebalanced_s)} ago" if row.rebalanced_s else "",
        "generation": f"generation {row.generation}" if row.generation is not None else "",
        "protocol": cells.name(row.protocol) if row.protocol else "",
        "type": cells.name(row.type).lower() if row.type else "",
    }
    return [text for key, text in told.items() if text and key not in seen]


def _figure(
    key: str,
    title: str,
    width: int,
    text: Callable[[float | None], str],
    value: Callable[[WatchedGroup], float | None],
    priority: int,
) -> Column[WatchedGroup]:
    return Column(
        key,
        title,
        lambda row: text(value(row)),
        width,
        right=True,
        style=lambda row: "" if value(row) else "dim",
        order=value,
        falling=True,
        priority=priority,
    )


def _state(row: WatchedGroup) -> str:
    return cells.name(row.state)


def _state_style(row: WatchedGroup) -> str:
    if row.state in REBALANCING:
        return "warn"
    return "" if row.state == "Stable" else "dim"


def _generation(row: WatchedGroup) -> str:
    return MISSING if row.generation is None else str(row.generation)


def _protocol(row: WatchedGroup) -> str:
    return cells.name(row.protocol)


def _rate(per_second: float | None) -> str:
    """The header has the unit."""
    return cells.rate(per_second).removesuffix("/s")


def _since(seconds: float | None) -> str:
    return "now" if seconds == 0 else cells.duration(seconds)


def _why(row: WatchedGroup) -> str:
    return cells.name(row.verdict_reason) if row.verdict is not Verdict.OK else ""
