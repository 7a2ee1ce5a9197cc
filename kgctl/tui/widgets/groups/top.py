"""The panels above the table of all groups: what needs somebody, the lag of the cluster, what happened."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.health import FAULTS, Health
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.charts.lag_chart import LagChart
from kgctl.tui.widgets.frame.looks import Look, look
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.frame.table_panel import GONE, TablePanel
from kgctl.tui.widgets.group.bars import clock_time
from kgctl.tui.widgets.groups.columns import urgency
from kgctl.tui.widgets.table.columns import Column
from kgctl.watch.cluster import ClusterView
from kgctl.watch.figures import counted

LAG_TITLE, NO_FAULT = "Cluster lag, 10 min", "no fault now"
NO_LOOK = Look(" ", "")


class NeedsYou(TablePanel[WatchedGroup]):
    """The groups with a fault, the most urgent first."""

    def __init__(self) -> None:
        super().__init__(
            "Needs you",
            [
                Column("group", "GROUP", lambda row: cells.name(row.group), 11, flex=1, most=60),
                Column("what", "WHAT", in_short, 15, flex=1, most=15, style=lambda row: look(row.health).style),
            ],
            key=lambda row: row.group,
            look=lambda row: look(row.health),
            has_header=False,
            follows_top=True,
            empty="Nothing.",
            number=1,
            least=(34, 4),
            id="needs-you",
        )

    def show_faults(self, view: ClusterView) -> None:
        faults = sorted((row for row in view.rows if row.health in FAULTS), key=urgency, reverse=True)
        self.show(faults, gone=lambda row: NO_FAULT if view.row(row.group) is not None else GONE)


def in_short(row: WatchedGroup) -> str:
    """What is wrong with a group, in at most 15 characters."""
    if row.health is Health.LAGGING and row.rate_in is not None and row.rate_out is not None:
        growth = row.rate_in - row.rate_out
        if growth >= 0.05:
            return f"+{cells.rate(growth)}"
    return row.health.value.lower() if row.health else ""


class LagPanel(Panel):
    """The lag of the cluster over ten minutes, how fast it grows, and the records that arrive and are consumed."""

    def __init__(self) -> None:
        super().__init__(LAG_TITLE, number=2, least=(34, 4), id="cluster-lag")
        self.chart = LagChart()

    def show(self, view: ClusterView) -> None:
        self.show_title(LAG_TITLE)
        self.chart.show(view.lags(), view.totals)

    def compose(self) -> list[LagChart]:
        return [self.chart]


class EventsPanel(TablePanel[ClusterEvent]):
    """What happened to the groups, the newest first."""

    def __init__(self) -> None:
        super().__init__(
            "Events",
            [
                Column("time", "TIME", lambda row: clock_time(row.wall_ms)[:5], 5, style=lambda _: "dim"),
                Column("what", "WHAT", sentence, 20, flex=1, most=200),
            ],
            key=lambda row: f"{row.wall_ms} {row.group} {row.text}",
            name=sentence,
            look=lambda row: NO_LOOK if row.health is None else look(row.health),
            has_header=False,
            follows_top=True,
            empty="None yet.",
            number=3,
            least=(36, 4),
            id="events",
        )

    def show_events(self, events: Sequence[ClusterEvent]) -> None:
        self.show(list(reversed(events)), note="UTC")


def sentence(event: ClusterEvent) -> str:
    """The group and what happened to it."""
    text = cells.name(event.text)
    if event.kind is EventKind.VERDICT and event.health is not None:
        text = f"{event.health.value.lower()}: {text}" if event.health is not Health.OK else "ok"
    took = f" {cells.age(event.seconds)}" if event.seconds else ""
    if event.parts:
        return f"{counted(len(event.parts), 'group')} {text}"
    return f"{cells.name(event.group)} {text}{took}" if event.group else f"{text}{took}"
