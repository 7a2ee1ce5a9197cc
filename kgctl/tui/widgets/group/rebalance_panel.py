"""The panel of the selected rebalance: how it went, and what each member gained and lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.widgets import Static

from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Assignment
from kgctl.tui import cells
from kgctl.tui.widgets.assignment.grid import AssignmentGrid
from kgctl.tui.widgets.assignment.matrix import GAINED, LOST, View
from kgctl.tui.widgets.assignment.moves import Moves, in_words, moves
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.group.bars import Bar
from kgctl.tui.widgets.group.rebalance_text import sentences
from kgctl.tui.widgets.text.plain_line import PlainLine

NOT_KNOWN = "The assignment of this rebalance is not known."
UNDER_WAY = "There is no assignment yet."
UNTIL_NOW = "There is no assignment yet; until now:"


class RebalancePanel(Panel):
    """Without a rebalance, the current assignment. A refresh keeps the cursor, the view and the scroll position."""

    HELP_TITLE = "In the assignment"
    DEFAULT_CSS = """
    RebalancePanel > .rebalance--text { height: auto; max-height: 45%; color: $text-muted; }
    RebalancePanel.-zoomed > .rebalance--text { max-height: 12; }
    RebalancePanel > .rebalance--more { display: none; padding: 0; color: $text-muted; }
    RebalancePanel.-zoomed > .rebalance--more { display: block; }
    RebalancePanel > AssignmentGrid { min-height: 3; }
    RebalancePanel.-unknown > AssignmentGrid, RebalancePanel.-unknown > .rebalance--more { display: none; }
    """
    BINDINGS = [
        Binding("f", "fold", "Ranges or columns", tooltip="Show ranges, or one column per partition", show=False)
    ]

    def __init__(self) -> None:
        super().__init__("Assignment", number=4, least=(38, 4), id="rebalance")
        self.grid = AssignmentGrid()
        self._text = Static("", markup=False, classes="rebalance--text")
        self._more = PlainLine(classes="rebalance--more")
        self._compared: tuple[Assignment | None, Assignment | None, tuple[TopicPartition, ...]] = (None, None, ())
        self._change: Moves | None = None
        self._view = View.BOTH
        self._is_until_now = False
        self._named: tuple[str, ...] = ("Assignment",)

    def compose(self) -> ComposeResult:
        yield self._text
        yield self.grid
        yield self._more

    # ---- used by screens

    def show(
        self,
        bar: Bar | None,
        after: Assignment | None,
        before: Assignment | None,
        names: Mapping[str, str],
        partitions: Iterable[TopicPartition] = (),
    ) -> None:
        """Show a rebalance and the assignments around it, None where not known.

        `names` has a label for each member id, former members included. `partitions` are all partitions that the group reads, so that
        unassigned ones appear even if no member owned them before.
        """
        self._is_until_now = bar is not None and bar.is_under_way and after is None and bool(before)
        if self._is_until_now:
            after, before = before, None
        compared = (after, before, tuple(partitions))
        if compared != self._compared:
            self._compared = compared
            self._change = None if after is None else moves(after, before, compared[2])
        lines = [] if bar is None else sentences(bar, names)
        lines.insert(1, self._summary(bar))
        text = "\n".join(line for line in lines if line)
        if self._text.content != text:
            self._text.update(text)
        self.set_class(self._change is None, "-unknown")
        if self._change is not None:
            self.grid.show(self._change, {member: cells.name(label) for member, label in names.items()})
        self._named = _title(bar)
        self._show_view()

    @property
    def text(self) -> str:
        """The sentences above the grid."""
        return str(self._text.content)

    @property
    def view(self) -> View:
        """The view that is shown: AFTER if there is no earlier assignment to compare with."""
        return self._view if self._change is not None and self._change.owners_before is not None else View.AFTER

    def next_view(self) -> None:
        if self._change is not None and self._change.owners_before is not None:
            views = list(View)
            self._view = views[(views.index(self._view) + 1) % len(views)]
            self._show_view()

    # ---- keys

    def action_fold(self) -> None:
        self.grid.fold()

    def on_assignment_grid_moved(self) -> None:
        self._more.show(self.grid.in_words())

    # ---- rendering

    def _summary(self, bar: Bar | None) -> str:
        if self._is_until_now:
            return UNTIL_NOW
        if self._change is None:
            return UNDER_WAY if bar is not None and bar.is_under_way else NOT_KNOWN
        words = in_words(self._change)
        return f"To reach the targets: {words}." if bar is not None and bar.is_under_way else f"{words}."

    def _show_view(self) -> None:
        is_compared = self._change is not None and self._change.owners_before is not None
        parts = list(self._named)
        if is_compared and self.view is View.BOTH:
            parts.append(f"{GAINED} gained {LOST} lost")
        self.show_title(*parts, note=Content(self.view.value) if is_compared else "")
        self.grid.set_view(self.view)
        self._more.show(self.grid.in_words())


def _title(bar: Bar | None) -> tuple[str, ...]:
    if bar is None:
        return ("Assignment",)
    return ("Under way" if bar.is_under_way else f"Gen {cells.count(bar.rebalance.generation)}"), bar.cause
