"""What stands around the table of events: how many there were in the last hour, in which groups, and the chosen one in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from textual.content import Content

from broker.light_named_tuples import NamedTuple
from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.health import Health
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.charts.area import area
from kgctl.tui.widgets.events.table import group_of, moment, what
from kgctl.tui.widgets.frame.looks import look, verdict
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.frame.table_panel import TablePanel
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.text.line import Line
from kgctl.watch.cluster import ClusterView
from kgctl.watch.figures import counted

HOUR_MS = 3_600_000
COUNTS_WIDTH = 16


class ActivityPanel(Panel):
    """The events of the last hour, by time and by kind."""

    def __init__(self) -> None:
        super().__init__("Last hour", number=1, least=(40, 4), id="activity")
        self.chart = ActivityChart()

    def compose(self) -> list[ActivityChart]:
        return [self.chart]

    def show(self, events: Sequence[ClusterEvent], now_ms: int) -> None:
        """`events` are those that the filter shows."""
        recent = [event for event in events if event.wall_ms > now_ms - HOUR_MS]
        self.show_title(f"Last hour, {counted(len(recent), 'event')}")
        self.chart.show(recent, now_ms)


class ActivityChart(Line):
    DEFAULT_CSS = """
    ActivityChart { height: 1fr; padding: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._events: Sequence[ClusterEvent] = ()
        self._now_ms = 0

    def show(self, events: Sequence[ClusterEvent], now_ms: int) -> None:
        self._events, self._now_ms = events, now_ms
        self.refresh()

    def text(self, width: int) -> Content:
        height, columns = max(1, self.content_size.height), max(1, width - COUNTS_WIDTH)
        counts = [0] * columns
        for event in self._events:
            age = max(0.0, (self._now_ms - event.wall_ms) / HOUR_MS)
            counts[min(columns - 1, max(0, int((1 - age) * columns)))] += 1
        top = max(counts, default=0)
        kinds = Counter(event.kind for event in self._events).most_common(height)
        lines = []
        for place, bars in enumerate(area([count / top if count else None for count in counts], height)):
            kind, count = kinds[place] if place < len(kinds) else ("", 0)
            figure = f"{kind:<10}{count:>4,}" if count else ""
            lines.append(Content.assemble((f"{figure:<{COUNTS_WIDTH}}", "$text-muted"), (bars, "$primary")))
        return Content("\n").join(lines)


class Busy(NamedTuple):
    group: str
    events: int
    last_ms: int
    health: Health | None


class BusyPanel(TablePanel[Busy]):
    """The groups with the most events of the last hour."""

    def __init__(self) -> None:
        super().__init__(
            "Groups",
            [
                Column("group", "GROUP", lambda row: cells.name(row.group), 12, flex=1, most=60),
                Column("events", "EVENTS", lambda row: counted(row.events, "event"), 10, right=True),
                Column("last", "LAST", lambda row: f"last {moment(row.last_ms)}", 14, style=lambda _: "dim"),
            ],
            key=lambda row: row.group,
            look=lambda row: look(row.health),
            has_header=False,
            follows_top=True,
            empty="None.",
            number=2,
            least=(46, 4),
            id="busy",
        )

    def show_busy(self, events: Sequence[ClusterEvent], view: ClusterView) -> None:
        since_ms = view.snapshot.wall_ms - HOUR_MS
        counts: Counter[str] = Counter()
        last: dict[str, int] = {}
        for event in events:
            if event.wall_ms > since_ms:
                for group in event.groups:
                    counts[group] += 1
                    last[group] = max(event.wall_ms, last.get(group, 0))
        found = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        rows = ((group, count, view.row(group)) for group, count in found)
        self.show([Busy(group, count, last[group], row.health if row else None) for group, count, row in rows])


class EventDetail(Line):
    """The event under the cursor in full, and what the group is now."""

    DEFAULT_CSS = """
    EventDetail { height: 1fr; padding: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._event: ClusterEvent | None = None
        self._row: WatchedGroup | None = None

    def show(self, event: ClusterEvent | None, row: WatchedGroup | None) -> None:
        self._event, self._row = event, row
        self.refresh()

    def text(self, width: int) -> Content:
        event = self._event
        if event is None:
            return Content()
        lines = [Content(what(event))]
        if self._row is not None:
            reason = cells.name(self._row.health_reason) if self._row.health_reason else ""
            now = Content.assemble(("now  ", "$text-muted"), verdict(self._row.health), f"  {reason}")
            lines.append(now.truncate(width, ellipsis=True))
        return Content("\n").join(lines)


def title_of(event: ClusterEvent | None) -> Sequence[str]:
    if event is None:
        return ("Event",)
    opens = "Enter opens the group" if event.group is not None else ""
    if event.kind is EventKind.REBALANCE:
        opens = "Enter opens this rebalance"
    return group_of(event), event.kind, moment(event.wall_ms, "%Y-%m-%d %H:%M:%S UTC"), *([opens] if opens else [])
