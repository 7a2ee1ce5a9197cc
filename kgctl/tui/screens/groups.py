"""The screen of all groups: one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kgctl.model.health import Health
from kgctl.model.watched import WatchedGroup
from kgctl.tui.screens.polled import ClusterScreen
from kgctl.tui.screens.rebalance import RebalanceDialog
from kgctl.tui.screens.removal import RemoveMemberDialog
from kgctl.tui.screens.reset import ResetDialog
from kgctl.tui.widgets.frame.filter_bar import FilterBar
from kgctl.tui.widgets.groups.columns import columns
from kgctl.tui.widgets.groups.lines import Detail, FailedBrokers, Summary
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.cluster import ClusterView

if TYPE_CHECKING:
    from textual.screen import ModalScreen

NO_GROUPS, NO_MATCH = "No groups.", "No group matches. Press Esc to show all groups."


class GroupsScreen(ClusterScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", tooltip="Filter by text, a regex, or !text to exclude"),
        Binding("s", "sort_next", "Sort", tooltip="Sort by the next column"),
        Binding("S", "reverse", "Reverse the sort order", show=False),
        Binding("f", "faults", "Faults", tooltip="Show only groups that are not OK, or all groups"),
        Binding("space", "mark", "Mark or unmark the group", show=False),
        Binding("m", "marked", "Show only marked groups, or all groups", show=False),
        Binding("u", "unmark", "Unmark all groups", show=False),
        Binding("N", "sort('group')", "Sort by name", show=False),
        Binding("H,V", "sort('health')", "Sort by health, worst first", show=False),
        Binding("L", "sort('lag')", "Sort by lag", show=False),
        Binding("r", "change('reset')", "Reset", tooltip="Reset offsets of the group"),
        Binding("b", "change('rebalance')", "Rebalance", tooltip="Trigger a rebalance of the group"),
        Binding("x", "change('remove')", "Remove", tooltip="Remove a member of the group"),
        Binding("escape", "show_all", "Show all groups", show=False),
    ]

    def __init__(self) -> None:
        super().__init__("Groups")
        self.all: Sequence[WatchedGroup] = ()
        self.only_faults = self.only_marked = False

    def contents(self) -> ComposeResult:
        yield Summary()
        yield FailedBrokers()
        yield Rows[WatchedGroup](columns(), key=lambda row: row.group)
        yield Detail()
        yield FilterBar()

    def on_mount(self) -> None:
        self.rows.sort_by("group")

    @property
    def rows(self) -> Rows[WatchedGroup]:
        return self.query_one(Rows)

    def answered(self, answer: ClusterView) -> None:
        self.all = answer.rows
        self.query_one(FailedBrokers).show(answer.snapshot.errors)
        self._show()

    # ---- contents

    def _show(self) -> None:
        """Show the selected rows, and the lines around the table."""
        rows, bar = self.rows, self.query_one(FilterBar)
        was_empty = rows.cursor_row is None
        selected = bar.filter.of(self.all, lambda row: row.group)
        if self.only_faults:
            selected = [row for row in selected if row.health not in (None, Health.OK, Health.UNUSED)]
        if self.only_marked:
            selected = [row for row in selected if row.group in rows.marked]
        rows.empty = NO_MATCH if self.all else NO_GROUPS
        rows.show(selected)
        self._show_summary()
        if was_empty is not (rows.cursor_row is None):
            self.refresh_bindings()

    def _show_summary(self) -> None:
        rows, bar = self.rows, self.query_one(FilterBar)
        selected_by = ["faults"] if self.only_faults else []
        selected_by += ["marked"] if self.only_marked else []
        marked = sum(row.group in rows.marked for row in self.all) if rows.marked else 0
        self.query_one(Summary).show(self.all, len(rows.rows), selected_by, marked)
        bar.note(f"{len(rows.rows):,} of {len(self.all):,}")

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.query_one(Detail).show(event.row, self.rows.visible_columns)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(lambda: self.query_one(Detail).show(self.rows.cursor_row, self.rows.visible_columns))

    def on_filter_bar_changed(self, event: FilterBar.Changed) -> None:
        self._show()

    def on_filter_bar_left(self, event: FilterBar.Left) -> None:
        self.rows.focus()

    # ---- keys

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.dashboard.open_group(event.row.group)

    def action_filter(self) -> None:
        self.query_one(FilterBar).open()

    def action_sort_next(self) -> None:
        self.rows.sort_next()

    def action_sort(self, column: str) -> None:
        self.rows.sort_by(column)

    def action_reverse(self) -> None:
        self.rows.reverse()

    def action_faults(self) -> None:
        self.only_faults = not self.only_faults
        self._show()

    def action_mark(self) -> None:
        self.rows.toggle_mark()
        self._show_summary()

    def action_marked(self) -> None:
        self.only_marked = not self.only_marked
        self._show()

    def action_unmark(self) -> None:
        self.rows.marked.clear()
        self.only_marked = False
        self._show()

    def action_show_all(self) -> None:
        """Clear the filter; without a filter, show healthy and unmarked groups again."""
        bar = self.query_one(FilterBar)
        if bar.filter.pattern is not None:
            bar.action_clear()
            return
        self.only_faults = self.only_marked = False
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "change" and (self.dashboard.read_only or self.rows.cursor_row is None):
            return None
        if action == "filter" and self.query_one(FilterBar).is_typing:
            return False
        return super().check_action(action, parameters)

    def action_change(self, what: str) -> None:
        row, feed = self.rows.cursor_row, self.dashboard.feed
        if row is None:
            return
        dialog: ModalScreen[bool]
        if what == "reset":
            dialog = ResetDialog(feed, row.group)
        elif what == "rebalance":
            dialog = RebalanceDialog(feed, row.group)
        else:
            dialog = RemoveMemberDialog(feed, row.group)
        # The result is not needed: this screen refreshes at once when it resumes.
        self.app.push_screen(dialog)
