"""The screen of events: what happened to the groups and to the cluster, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.tui import command_line
from kgctl.tui.screens.polled import ClusterScreen
from kgctl.tui.widgets.events.around import ActivityPanel, Busy, BusyPanel, EventDetail, title_of
from kgctl.tui.widgets.events.table import EventsTable
from kgctl.tui.widgets.frame.filter_bar import FilterBar
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.frame.shelf import Shelf
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.cluster import ClusterView


class EventsScreen(ClusterScreen):
    """It follows the newest event while the cursor is on it."""

    DEFAULT_CSS = """
    EventsScreen #top { height: 6; }
    EventsScreen.-high #top { height: 9; }
    EventsScreen.-low #top { display: none; }
    EventsScreen #event { height: 5; }
    EventsScreen.-low #event { height: 4; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "Back"),
        Binding("f", "follow", "Follow", tooltip="Go to the newest event, and follow"),
    ]
    HINTS: ClassVar[Sequence[tuple[str, str]]] = (("enter", "open"), ("1-3", "zoom"), ("tab", "next"))

    def __init__(self) -> None:
        super().__init__("Events")
        self.activity, self.busy, self.table = ActivityPanel(), BusyPanel(), EventsTable()
        self.detail = EventDetail()
        self.event = Panel("Event", self.detail, id="event")
        self.follows = True
        self._view: ClusterView | None = None

    def contents(self) -> ComposeResult:
        with Shelf(id="top"):
            yield self.activity
            yield self.busy
        yield self.table
        yield self.event

    def focus_first(self) -> None:
        self.set_focus(self.table.table)

    def answered(self, answer: ClusterView) -> None:
        self._view = answer
        self._show()

    def _show(self) -> None:
        view, rows = self._view, self.table.table
        if view is None:
            return
        newer = 0 if self.follows else rows.cursor
        parts = ("follows",) if self.follows else (f"{newer:,} newer (f follows)",)
        self.table.show(list(reversed(view.events)), parts=parts)
        if self.follows:
            rows.go_to(0)
        shown = rows.rows
        self.activity.show(shown, view.snapshot.wall_ms)
        self.busy.show_busy(shown, view)
        self._show_detail()

    def _show_detail(self) -> None:
        event = self.table.table.cursor_row
        self.event.show_title(*title_of(event))
        found = self._view.row(event.group) if self._view is not None and event is not None and event.group else None
        self.detail.show(event, found)

    # ---- keys

    def copied_name(self, rows: Rows[Any], row: Any) -> str:
        return row.group or ""

    def copied_command(self, row: Any) -> str:
        shown = self.dashboard.feed.cluster
        return command_line.showing(shown, "groups", "history", row.group) if row.group else ""

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows is self.table.table:
            follows = event.rows.cursor == 0
            if follows is not self.follows:
                self.follows = follows
                self._show()
            self._show_detail()

    def on_rows_sorted(self, event: Rows.Sorted) -> None:
        self._show_detail()

    def on_filter_bar_changed(self, event: FilterBar.Changed) -> None:
        self.call_after_refresh(self._show)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        row = event.row
        if isinstance(row, Busy):
            self.dashboard.open_group(row.group)
        elif isinstance(row, ClusterEvent) and row.group is not None:
            self.dashboard.open_group(row.group, row.wall_ms if row.kind is EventKind.REBALANCE else None)

    def action_follow(self) -> None:
        self.table.table.action_go(0)
        self.follows = True
        self._show()
