"""The panels above the table of all groups: what needs somebody, the lag of the cluster, what happened."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.health import FAULTS, Health
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.charts.area import area, fitted
from kgctl.tui.widgets.frame.looks import Look, look
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.frame.table_panel import GONE, TablePanel
from kgctl.tui.widgets.group.timeline import clock_time
from kgctl.tui.widgets.groups.columns import urgency
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.text.line import Line
from kgctl.watch.cluster import ClusterView
from kgctl.watch.trend import levels

LAG_TITLE, FIGURES_WIDTH = "Cluster lag, 10 min", 13
NO_FAULT = "no fault now"
NO_LOOK = Look(" ", "")


class NeedsYou(TablePanel[WatchedGroup]):
    """The groups with a fault, the most urgent first."""

    def __init__(self) -> None:
        super().__init__(
            "Needs you",
            [
                Column("group", "GROUP", lambda row: cells.name(row.group), 12, flex=1, most=60),
                Column("what", "WHAT", in_short, 15, style=lambda row: look(row.health).style),
            ],
            key=lambda row: row.group,
            look=lambda row: look(row.health),
            has_header=False,
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
        self.chart.show(view)

    def compose(self) -> list[LagChart]:
        return [self.chart]


class LagChart(Line):
    DEFAULT_CSS = """
    LagChart { height: 1fr; padding: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._view: ClusterView | None = None

    def show(self, view: ClusterView) -> None:
        self._view = view
        self.refresh()

    def text(self, width: int) -> Content:
        view, height = self._view, max(1, self.content_size.height)
        if view is None:
            return Content()
        totals = view.totals
        figures = [Content.styled(cells.short(totals.lag), "bold"), _growth(totals.lag_per_s)]
        rates = [("in", totals.rate_in), ("out", totals.rate_out)]
        figures += [Content.assemble((f"{word:<4}", "$text-muted"), cells.rate(rate)) for word, rate in rates]
        if height < len(figures):
            figures = [figures[0] + " " + figures[1], *figures[2:]]
        room = max(0, width - FIGURES_WIDTH)
        lags = fitted(view.lags(), room)
        chart = area(levels(lags, totals.rate_in), height)
        empty = Content(" " * FIGURES_WIDTH)
        lines = []
        for place, columns in enumerate(chart):
            figure = figures[place] if place < len(figures) else empty
            blank = " " * max(1, FIGURES_WIDTH - figure.cell_length)
            lines.append((figure + blank).truncate(FIGURES_WIDTH) + Content.styled(columns, "$primary"))
        return Content("\n").join(lines)


def _growth(per_s: float | None) -> Content:
    if per_s is None:
        return Content()
    is_level = abs(per_s) < 0.5
    sign = "" if is_level else "+" if per_s > 0 else "-"
    text = f"{sign}{cells.rate(0.0 if is_level else abs(per_s))}"
    return Content.styled(text, "$text-warning" if per_s > 0 and not is_level else "$text-muted")


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
    return f"{cells.name(event.group)} {text}{took}" if event.group else f"{text}{took}"
