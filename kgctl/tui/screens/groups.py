"""The screen of all groups: one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kgctl.model.groups import GroupDescription
from kgctl.model.health import FAULTS, Health
from kgctl.model.watched import WatchedGroup
from kgctl.tui import command_line
from kgctl.tui.screens.changes import Aim, ChangesGroups
from kgctl.tui.screens.polled import ClusterScreen
from kgctl.tui.widgets.charts.area import area, fitted
from kgctl.tui.widgets.events.lines import of_group
from kgctl.tui.widgets.frame.filter import Field
from kgctl.tui.widgets.frame.looks import look
from kgctl.tui.widgets.frame.shelf import Shelf
from kgctl.tui.widgets.frame.table_panel import GONE, TablePanel
from kgctl.tui.widgets.frame.table_panel import NO_MATCH as NO_MATCH_NOW
from kgctl.tui.widgets.groups.columns import columns, why
from kgctl.tui.widgets.groups.lines import FailedBrokers, tally
from kgctl.tui.widgets.groups.preview import Preview
from kgctl.tui.widgets.groups.top import EventsPanel, LagPanel, NeedsYou
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.cluster import ClusterView
from kgctl.watch.trend import levels

NO_GROUPS, NO_MATCH = "No groups.", "No group matches. Press Esc to show all groups."
# A frame and a header; the fewest lines of the table; the fewest of the preview, and on a high terminal.
AROUND_ROWS, LEAST_LINES, PREVIEW_LINES = 3, 7, (5, 12)
# The lines of the top, usual and on a high terminal; there the most of them, and the lines of the preview beyond which it grows.
TOP_LINES, MOST_TOP, ENOUGH_PREVIEW = (5, 8), 20, 18


class GroupsScreen(ChangesGroups, ClusterScreen):
    DEFAULT_CSS = """
    GroupsScreen #top { height: 5; }
    GroupsScreen.-high #top { height: 8; }
    GroupsScreen.-low #top { display: none; }
    GroupsScreen #preview { height: 5; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "faults", "Faults", tooltip="Show only groups that need you, or all groups"),
        Binding("u", "unused", "Unused", tooltip="Hide or show unused groups"),
        Binding("m", "marked", "Show only marked groups, or all groups", show=False),
        Binding("N", "sort('group')", "Sort by name", show=False),
        Binding("H,V", "sort('verdict')", "Sort by verdict, worst first", show=False),
        Binding("L", "sort('lag')", "Sort by lag", show=False),
        Binding("escape", "show_all", "Show all groups", show=False),
    ]
    HINTS: ClassVar[Sequence[tuple[str, str]]] = (("1-4", "zoom"), ("tab", "next"))

    def __init__(self) -> None:
        super().__init__("")
        self._view: ClusterView | None = None
        self.all: Sequence[WatchedGroup] = ()
        self.only_faults = self.only_marked = self.hides_unused = False
        self.needs_you, self.lag, self.events = NeedsYou(), LagPanel(), EventsPanel()
        self.panel: TablePanel[WatchedGroup] = TablePanel(
            "Groups",
            columns(self._trend, self._why, self._since, lambda: self.dashboard.baseline is not None),
            key=lambda row: row.group,
            fields=self._fields(),
            look=lambda row: look(row.health),
            is_markable=True,
            empty=NO_GROUPS,
            no_match=NO_MATCH,
            number=4,
            id="groups",
        )
        self.preview = Preview(id="preview")

    def contents(self) -> ComposeResult:
        yield FailedBrokers()
        with Shelf(id="top"):
            yield self.needs_you
            yield self.lag
            yield self.events
        yield self.panel
        yield self.preview

    def on_mount(self) -> None:
        self.rows.sort_by("verdict")

    @property
    def rows(self) -> Rows[WatchedGroup]:
        return self.panel.table

    @property
    def current(self) -> WatchedGroup | None:
        """The group under the cursor of the table that has the focus; None of an event that is not of one group."""
        if self.events.table.has_focus:
            return self._view.row(self._event_group or "") if self._view is not None else None
        return (self.needs_you.table if self.needs_you.table.has_focus else self.rows).cursor_row

    @property
    def _event_group(self) -> str | None:
        event = self.events.table.cursor_row
        return event.group if event is not None else None

    def answered(self, answer: ClusterView) -> None:
        self.all, self._view = answer.rows, answer
        self.query_one(FailedBrokers).show(answer.snapshot.errors)
        self.needs_you.show_faults(answer)
        self.lag.show(answer)
        self.events.show_events(answer.events)
        self._show(is_news=True)

    # ---- contents

    def _fields(self) -> list[Field[WatchedGroup]]:
        return [
            Field("state", lambda row: (row.state,)),
            Field("verdict", lambda row: (row.health.value.replace(" ", "-") if row.health else "judging",)),
            Field("topic", self._topics),
            Field("member", self._members),
            Field("lag", number=lambda row: row.unread),
        ]

    def _description(self, row: WatchedGroup | None) -> GroupDescription | None:
        return self._view.snapshot.groups.get(row.group) if self._view and row else None

    def _topics(self, row: WatchedGroup) -> set[str | None]:
        group = self._description(row)
        return {one.topic for one in group.partitions} | (group.subscribed or frozenset()) if group else set()

    def _members(self, row: WatchedGroup) -> list[str | None]:
        group = self._description(row)
        members = group.members if group else ()
        return [name for one in members for name in (one.consumer_id, one.client_id, one.group_instance_id, one.host)]

    def _trend(self, row: WatchedGroup, width: int) -> str:
        if self._view is None or row.unread is None:
            return ""
        heights = levels(fitted(self._view.lags(row.group), width), row.rate_in)
        return area(heights, 1)[0]

    def _since(self, row: WatchedGroup) -> tuple[int | None, int | None]:
        """By how much the lag has grown, and how many records were read since the baseline."""
        baseline, group = self.dashboard.baseline, self._description(row)
        if baseline is None or group is None:
            return None, None
        return baseline.lag_since(row), baseline.read_since(group)

    def _why(self, row: WatchedGroup, width: int) -> str:
        return why(row, width, has_verdict="verdict" in self.rows.visible_columns)

    def _show(self, *, is_news: bool = False) -> None:
        """Show the selected rows with their counts. With news, a group that goes stays under the cursor."""
        selected, parts = self.all, []
        unused = sum(row.health is Health.UNUSED for row in self.all)
        if self.hides_unused:
            selected = [row for row in selected if row.health is not Health.UNUSED]
        if unused:
            parts.append(f"unused {unused:,}" + (" hidden (u)" if self.hides_unused else " (u hides)"))
        if self.only_faults:
            selected = [row for row in selected if row.health in FAULTS]
            parts.append("faults (f)")
        if self.only_marked:
            selected = [row for row in selected if row.group in self.rows.marked]
            parts.append("marked (m)")
        gone = self._word if is_news else None
        self.panel.show(selected, total=len(self.all), parts=parts, note=tally(self.all), gone=gone)
        self._fit(len(self.all) - (unused if self.hides_unused else 0))

    def _fit(self, rows: int) -> None:
        """Give the table the lines that it needs, and the rest to the preview; on a high terminal, also to the top."""
        top, is_high = self.query_one("#top"), self.has_class("-high")
        height = self.query_one("#contents").size.height
        if self.zoom.panel is not None or not is_high:
            top.styles.clear_rule("height")
        if self.zoom.panel is not None or height <= 0:
            return
        least = TOP_LINES[is_high] if top.display else 0
        lines = max(LEAST_LINES, min(rows + AROUND_ROWS, height - least - PREVIEW_LINES[is_high]))
        rest = height - lines
        if is_high:
            least = max(least, min(MOST_TOP, rest - ENOUGH_PREVIEW))
            top.styles.height = least
        self.preview.styles.height = rest - least

    def _show_preview(self) -> None:
        row = self.current
        events = of_group(self._view.events, row.group) if self._view is not None and row is not None else ()
        self.preview.show(row, self.rows.visible_columns, self._description(row), events)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self._show_preview()
        if event.rows is self.events.table:
            self.refresh_bindings()

    def focus_first(self) -> None:
        self.set_focus(self.rows)

    def on_descendant_focus(self) -> None:
        self._show_preview()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        self._show(is_news=True)
        self._show_preview()

    # ---- keys

    def action_zoom(self, number: int) -> None:
        super().action_zoom(number)
        self._show()

    def copied_name(self, rows: Rows[Any], row: Any) -> str:
        return row.group or ""

    def copied_command(self, row: Any) -> str:
        return command_line.showing(self.dashboard.feed.cluster, "groups", "describe", row.group) if row.group else ""

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        if event.row.group is not None:
            self.dashboard.open_group(event.row.group)

    def action_sort(self, column: str) -> None:
        self.rows.sort_by(column)

    def action_faults(self) -> None:
        self.only_faults = not self.only_faults
        self._show()

    def action_unused(self) -> None:
        self.hides_unused = not self.hides_unused
        self._show()

    def action_marked(self) -> None:
        self.only_marked = not self.only_marked
        self._show()

    def on_table_panel_marked(self, event: TablePanel.Marked) -> None:
        self.only_marked = self.only_marked and bool(self.rows.marked)
        self._show()

    def action_show_all(self) -> None:
        """Show healthy and unmarked groups again."""
        self.only_faults = self.only_marked = False
        self._show()

    def aim(self, what: str) -> Aim:
        """The marked groups, or the one under the cursor of the table that has the focus."""
        is_event, row = self.events.table.has_focus, self.current
        if self.rows.marked and not is_event and not self.needs_you.table.has_focus:
            order = [row.group for row in self.rows.rows if row.group in self.rows.marked]
            return Aim([*order, *sorted(self.rows.marked - set(order))])
        if row is None:
            return Aim(gone=(self._event_group or "") if is_event else "")
        return Aim([row.group]) if self._is_there(row) else Aim(gone=row.group)

    def changed(self) -> None:
        """Marks are for one change: a filter could hide those of an earlier one."""
        self.rows.unmark_all()
        self.only_marked = False
        self._show()

    def _word(self, row: WatchedGroup) -> str:
        return NO_MATCH_NOW if self._is_there(row) else GONE

    def _is_there(self, row: WatchedGroup) -> bool:
        return self._view is not None and self._view.row(row.group) is not None
