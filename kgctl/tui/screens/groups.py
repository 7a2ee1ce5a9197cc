"""All groups: one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kgctl.model.watched import Look, Verdict, WatchedGroup
from kgctl.tui.screens.rebalance import RebalanceDialog
from kgctl.tui.screens.removal import RemoveMemberDialog
from kgctl.tui.screens.reset import ResetDialog
from kgctl.tui.screens.watching import Watching
from kgctl.tui.widgets.filter_bar import FilterBar
from kgctl.tui.widgets.group_columns import columns
from kgctl.tui.widgets.group_lines import Detail, Summary, Unheard
from kgctl.tui.widgets.rows import Rows
from kgctl.watch.groups import GroupsWatch

if TYPE_CHECKING:
    from textual.screen import ModalScreen

NONE_YET, NONE_PASSES = "No groups.", "No group passes. Esc shows all."


class Seen(NamedTuple):
    """A look, and what it and those before it tell."""

    look: Look
    rows: Sequence[WatchedGroup]


class GroupsScreen(Watching[Seen]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "slash", "filter", "Filter", key_display="/", tooltip="Filter: text, a regex, or ! and what to leave out"
        ),
        Binding("s", "sort_next", "Sort", tooltip="Sort by the next column"),
        Binding("S", "reverse", "Sort the other way", show=False),
        Binding("f", "faults", "Faults", tooltip="Only groups with a fault, or all again"),
        Binding("space", "mark", "Mark the group, or take its mark away", show=False),
        Binding("m", "marked", "Only marked groups, or all again", show=False),
        Binding("u", "unmark", "Unmark all", show=False),
        Binding("N", "sort('group')", "Sort by name", show=False),
        Binding("V", "sort('verdict')", "Sort by verdict, worst first", show=False),
        Binding("L", "sort('lag')", "Sort by lag", show=False),
        Binding("r", "change('reset')", "Reset", tooltip="Reset offsets of the group"),
        Binding("b", "change('rebalance')", "Rebalance", tooltip="Trigger a rebalance of the group"),
        Binding("x", "change('remove')", "Remove", tooltip="Remove a member of the group"),
        Binding("escape", "show_all", "Show all groups again", show=False),
    ]

    def __init__(self) -> None:
        super().__init__("Groups")
        self._watched = GroupsWatch()
        self.all: Sequence[WatchedGroup] = ()
        self.only_faults = self.only_marked = False

    def contents(self) -> ComposeResult:
        yield Summary()
        yield Unheard()
        yield Rows[WatchedGroup](columns(), key=lambda row: row.group)
        yield Detail()
        yield FilterBar()

    def on_mount(self) -> None:
        self.rows.sort_by("group")

    @property
    def rows(self) -> Rows[WatchedGroup]:
        return self.query_one(Rows)

    async def ask(self) -> Seen:
        # With 10,000 groups that is a tenth of a second of computing, which keys do not have to wait for.
        return await self.kgctl.feed.look(lambda look: Seen(look, self._watched.add(look)))

    def answered(self, answer: Seen) -> None:
        self.all = answer.rows
        self.query_one(Unheard).tell(answer.look.errors)
        self._show()

    # ---- what is seen of it

    def _show(self) -> None:
        """The rows that are chosen, and the lines that tell of them."""
        rows, bar = self.rows, self.query_one(FilterBar)
        was_empty = rows.cursor_row is None
        chosen = bar.filter.of(self.all, lambda row: row.group)
        if self.only_faults:
            chosen = [row for row in chosen if row.verdict is not Verdict.OK]
        if self.only_marked:
            chosen = [row for row in chosen if row.group in rows.marked]
        rows.empty = NONE_PASSES if self.all else NONE_YET
        rows.show(chosen)
        self._tell()
        if was_empty is not (rows.cursor_row is None):
            self.refresh_bindings()

    def _tell(self) -> None:
        rows, bar = self.rows, self.query_one(FilterBar)
        chosen_by = ["faults"] if self.only_faults else []
        chosen_by += ["marked"] if self.only_marked else []
        marked = sum(row.group in rows.marked for row in self.all) if rows.marked else 0
        self.query_one(Summary).tell(self.all, len(rows.rows), chosen_by, marked)
        bar.note(f"{len(rows.rows):,} of {len(self.all):,}")

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.query_one(Detail).tell(event.row, self.rows.seen)

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(lambda: self.query_one(Detail).tell(self.rows.cursor_row, self.rows.seen))

    def on_filter_bar_changed(self, event: FilterBar.Changed) -> None:
        self._show()

    def on_filter_bar_left(self, event: FilterBar.Left) -> None:
        self.rows.focus()

    # ---- keys

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.kgctl.open_group(event.row.group)

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
        self._tell()

    def action_marked(self) -> None:
        self.only_marked = not self.only_marked
        self._show()

    def action_unmark(self) -> None:
        self.rows.marked.clear()
        self.only_marked = False
        self._show()

    def action_show_all(self) -> None:
        """The last choice first: the filter, then the faults and the marked ones."""
        bar = self.query_one(FilterBar)
        if bar.filter.pattern is not None:
            bar.action_clear()
            return
        self.only_faults = self.only_marked = False
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "change" and (self.kgctl.read_only or self.rows.cursor_row is None):
            return None
        if action == "filter" and self.query_one(FilterBar).is_typing:
            return False
        return super().check_action(action, parameters)

    def action_change(self, what: str) -> None:
        row, feed = self.rows.cursor_row, self.kgctl.feed
        if row is None:
            return
        dialog: ModalScreen[bool]
        if what == "reset":
            dialog = ResetDialog(feed, row.group)
        elif what == "rebalance":
            dialog = RebalanceDialog(feed, row.group)
        else:
            dialog = RemoveMemberDialog(feed, row.group)
        # Whoever comes back to this screen sees a new look at once, changed or not.
        self.app.push_screen(dialog)
