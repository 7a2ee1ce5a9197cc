"""The table of events across groups, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.filter import Field
from kgctl.tui.widgets.frame.looks import Look, look
from kgctl.tui.widgets.frame.table_panel import TablePanel
from kgctl.tui.widgets.table.columns import Column
from kgctl.watch.figures import counted

LOOKS = {
    EventKind.VERDICT: Look(glyphs.WARNING, "warn"),
    EventKind.REBALANCE: Look(glyphs.MOVING, "dim"),
    EventKind.MEMBER: Look(glyphs.MOVING, "dim"),
    EventKind.GROUP: Look(glyphs.MARK, "dim"),
    EventKind.CLUSTER: Look(glyphs.WARNING, "warn"),
}
ALL_GROUPS = "all groups"
# The cells from which there is room for the kind, and for the date.
USUAL, WIDE = 90, 130


def moment(wall_ms: int, form: str = "%H:%M:%S") -> str:
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime(form)


def what(event: ClusterEvent) -> str:
    """What happened, without the group: a verdict that has changed stands before its reason."""
    text = cells.name(event.text) if event.text else ""
    if event.health is None:
        return text
    was = f", was {event.was.value.lower()}" if event.was is not None else ""
    return f"{event.health.value.lower()}{was}" + (f": {text}" if text else "")


def group_of(event: ClusterEvent) -> str:
    if event.parts:
        return counted(len(event.parts), "group")
    return ALL_GROUPS if event.group is None else cells.name(event.group)


def event_look(event: ClusterEvent) -> Look:
    return LOOKS[event.kind] if event.health is None else look(event.health)


def key_of(event: ClusterEvent) -> str:
    return f"{event.wall_ms} {event.kind} {event.group} {event.text}"


class EventsTable(TablePanel[ClusterEvent]):
    """Words of the filter look at groups and at what happened."""

    def __init__(self) -> None:
        super().__init__(
            "Events",
            [
                Column("date", "DATE", lambda row: moment(row.wall_ms, "%m-%d"), 5, style=_dim, from_room=WIDE),
                Column("time", "TIME UTC", lambda row: moment(row.wall_ms), 8, style=_dim, order=_order, falling=True),
                Column("group", "GROUP", group_of, 16, flex=1, most=50, order=group_of),
                Column(
                    "kind", "KIND", lambda row: row.kind, 9, style=_dim, order=lambda row: row.kind, from_room=USUAL
                ),
                Column("what", "WHAT", what, 24, flex=8, most=300),
            ],
            key=key_of,
            name=searched,
            fields=fields(),
            look=event_look,
            empty="Nothing has happened since the dashboard started.",
            number=3,
            id="events-table",
        )


def searched(event: ClusterEvent) -> str:
    """What words of the filter look at."""
    return f"{group_of(event)} {' '.join(event.groups)} {what(event)}"


def fields() -> Sequence[Field[ClusterEvent]]:
    return (
        Field("kind", lambda row: (row.kind,)),
        Field("group", lambda row: row.groups),
        Field("verdict", lambda row: (row.health.value.replace(" ", "-") if row.health else None,)),
        Field("seconds", number=lambda row: row.seconds),
    )


def _order(event: ClusterEvent) -> int:
    return event.wall_ms


def _dim(event: ClusterEvent) -> str:
    return "dim"
