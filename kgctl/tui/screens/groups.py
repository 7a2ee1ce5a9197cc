"""The screen of all groups: one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kgctl.model.health import FAULTS, Health
from kgctl.model.watched import Snapshot, WatchedGroup
from kgctl.tui.screens.polled import ClusterScreen
from kgctl.tui.screens.rebalance import RebalanceDialog
from kgctl.tui.screens.removal import RemoveMemberDialog
from kgctl.tui.screens.reset import ResetDialog
from kgctl.tui.widgets.frame.filter import Field
from kgctl.tui.widgets.frame.looks import look
from kgctl.tui.widgets.frame.table_panel import TablePanel
from kgctl.tui.widgets.groups.columns import columns
from kgctl.tui.widgets.groups.lines import FailedBrokers, Preview, tally
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.cluster import ClusterView

if TYPE_CHECKING:
    from textual.screen import ModalScreen

NO_GROUPS, NO_MATCH = "No groups.", "No group matches. Press Esc to show all groups."


class GroupsScreen(ClusterScreen):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "faults", "Faults", tooltip="Show only groups that need you, or all groups"),
        Binding("u", "unused", "Unused", tooltip="Hide or show unused groups"),
        Binding("m", "marked", "Show only marked groups, or all groups", show=False),
        Binding("N", "sort('group')", "Sort by name", show=False),
        Binding("H,V", "sort('verdict')", "Sort by verdict, worst first", show=False),
        Binding("L", "sort('lag')", "Sort by lag", show=False),
        Binding("r", "change('reset')", "Reset", tooltip="Reset offsets of the group"),
        Binding("b", "change('rebalance')", "Rebalance", tooltip="Trigger a rebalance of the group"),
        Binding("x", "change('remove')", "Remove", tooltip="Remove a member of the group"),
        Binding("escape", "show_all", "Show all groups", show=False),
    ]
    HINTS: ClassVar[Sequence[tuple[str, str]]] = (("1-4", "zoom"), ("tab", "next"))

    def __init__(self) -> None:
        super().__init__("")
        self._snapshot: Snapshot | None = None
        self.all: Sequence[WatchedGroup] = ()
        self.only_faults = self.only_marked = self.hides_unused = False
        self.panel: TablePanel[WatchedGroup] = TablePanel(
            "Groups",
            columns(),
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
        yield self.panel
        yield self.preview

    def on_mount(self) -> None:
        self.rows.sort_by("verdict")

    @property
    def rows(self) -> Rows[WatchedGroup]:
        return self.panel.table

    def answered(self, answer: ClusterView) -> None:
        self.all, self._snapshot = answer.rows, answer.snapshot
        self.query_one(FailedBrokers).show(answer.snapshot.errors)
        self._show()

    # ---- contents

    def _fields(self) -> list[Field[WatchedGroup]]:
        return [
            Field("state", lambda row: (row.state,)),
            Field("verdict", lambda row: (row.health.value.replace(" ", "-") if row.health else "judging",)),
            Field("topic", self._topics),
            Field("member", self._members),
            Field("lag", number=lambda row: row.lag),
        ]

    def _topics(self, row: WatchedGroup) -> set[str | None]:
        group = self._snapshot.groups.get(row.group) if self._snapshot else None
        return {one.topic for one in group.partitions} | (group.subscribed or frozenset()) if group else set()

    def _members(self, row: WatchedGroup) -> list[str | None]:
        group = self._snapshot.groups.get(row.group) if self._snapshot else None
        members = group.members if group else ()
        return [name for one in members for name in (one.consumer_id, one.client_id, one.group_instance_id, one.host)]

    def _show(self) -> None:
        """Show the selected rows with their counts."""
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
        self.panel.show(selected, total=len(self.all), parts=parts, note=tally(self.all))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.preview.show(event.row, self.rows.visible_columns)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(lambda: self.preview.show(self.rows.cursor_row, self.rows.visible_columns))

    # ---- keys

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
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

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "change" and (self.dashboard.read_only or self.rows.cursor_row is None):
            return None
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
