"""The columns of the table of all groups, and the reason for each cell without a value."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kgctl.model.groups import REBALANCING
from kgctl.model.health import FAULTS, Health, attention
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.frame.looks import look
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.watch.figures import counted

_NEEDS_TWO = "needs two refreshes"
_NO_ARRIVALS = "no record arrives in a partition with lag"
_NO_OFFSETS = "no offsets of the group are known"
_EXACT_BELOW = 10_000_000
# The cells from which there is room for what is also below the table.
WIDE = 150
SHORT_STATES = {
    "PreparingRebalance": ("Preparing", "Prepar."),
    "CompletingRebalance": ("Completing", "Complet."),
    "Assigning": ("Assigning", "Assign."),
    "Reconciling": ("Reconciling", "Reconc."),
}


def columns(
    trend: Callable[[WatchedGroup, int], str],
    why: Callable[[WatchedGroup, int], str],
    since: Callable[[WatchedGroup], tuple[int | None, int | None]] = lambda _: (None, None),
    has_since: Callable[[], bool] = lambda: False,
) -> list[Column[WatchedGroup]]:
    """At a width of 80, the name, the state, the lag, its trend and why; more columns appear as the width grows.

    `trend` draws ten minutes of lag into a number of cells, `why` has the verdict with its reason. `since` says by how much the lag
    has grown and how many records were read since a moment; `has_since`: whether there is one.
    """
    return [
        Column("group", "GROUP", _name, 14, flex=5, most=60, style=_unused, order=lambda row: row.group),
        Column("verdict", "VERDICT", _word, 15, style=_unused, order=urgency, falling=True, from_room=WIDE),
        Column("state", "STATE", _state, 8, flex=1, most=11, is_spelt_out=True, style=_state_style,
               order=lambda row: row.state, drawn=state),
        catalogue.generation(lambda row: row.generation, order=lambda row: row.generation, from_room=WIDE),
        catalogue.number("members", "MBR", lambda row: row.members, _whole, 3, 4),
        catalogue.number("lag", "LAG", lambda row: row.unread, _whole, 9),
        catalogue.change("lag-since", "LAG +/-", lambda row: since(row)[0], _whole, has_since),
        catalogue.change("read-since", "READ +/-", lambda row: since(row)[1], _whole, has_since),
        Column("trend", "10 MIN", _dim, 8, flex=1, most=20, style=_trend_style, drawn=trend, priority=3),
        catalogue.rate("in", "IN/s", lambda row: row.rate_in, 7),
        catalogue.rate("out", "OUT/s", lambda row: row.rate_out, 6),
        catalogue.number("behind", "BEHIND", lambda row: row.behind_s, cells.age, 6, 8),
        catalogue.number("since", "SINCE", lambda row: row.rebalanced_s, _since, 5, from_room=WIDE),
        Column("why", "WHY", _word, 20, flex=8, most=140, style=_unused, drawn=why),
    ]  # fmt: skip


def urgency(row: WatchedGroup) -> tuple[int, int]:
    """A sort key: the group that needs attention most is the largest."""
    rank, lag, _ = attention(row.health, row.uncommitted_records or row.lag, row.group)
    return -rank, -lag


def why(row: WatchedGroup, width: int, *, has_verdict: bool) -> str:
    """The longest form of the reason that fits, nothing for groups that are well.

    The sentence follows the verdict itself unless another column has it; the brief reason stands alone.
    """
    if row.health is Health.OK:
        return ""
    text = reason = cells.name(row.health_reason)
    if row.health is not None and not has_verdict:
        text = f"{row.health.value.lower()}: {reason}"
    return text if len(text) <= width or not row.health_brief else cells.name(row.health_brief)


def state(row: WatchedGroup, width: int) -> str:
    """The longest form of the state that fits."""
    found = _state(row)
    return next((text for text in (found, *SHORT_STATES.get(found, ())) if len(text) <= width), found)


def _name(row: WatchedGroup) -> str:
    return cells.name(row.group)


def _word(row: WatchedGroup) -> str:
    return "judging" if row.health is None else row.health.value


def _trend_style(row: WatchedGroup) -> str:
    return look(row.health).style if row.health in FAULTS else "dim"


def _dim(row: WatchedGroup) -> str:
    return "dim"


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
        "lag": ("LAG", row.unread, _NO_OFFSETS),
        "in": ("IN/s", row.rate_in, _NEEDS_TWO if row.lag is not None else _NO_OFFSETS),
        "out": ("OUT/s", row.rate_out, _NEEDS_TWO if row.lag is not None else _NO_OFFSETS),
        "behind": ("BEHIND", row.behind_s, _NO_ARRIVALS),
        "since": ("SINCE", row.rebalanced_s, _no_rebalance(row)),
    }
    if row.lag is None or row.rate_in is None:
        del values["behind"]
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
        "members": counted(row.members, "member") if row.members is not None else "",
        "behind": f"{cells.duration(behind)} behind" if (behind := row.behind_s) else "",
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


def _since(seconds: float | None) -> str:
    return "now" if seconds == 0 else cells.age(seconds)
