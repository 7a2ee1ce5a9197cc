"""The assignment of a group: which member owns which partition, and which partitions a rebalance moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Assignment
from kgctl.tui import cells
from kgctl.tui.widgets.assignment.grid import AssignmentGrid
from kgctl.tui.widgets.assignment.matrix import GAINED, KEPT, LOST, NONE, View
from kgctl.tui.widgets.assignment.moves import Moves, in_words, moves
from kgctl.tui.widgets.text.plain_line import PlainLine

NOT_KNOWN = "The assignment is not known."


class AssignmentPane(Vertical):
    """A title, a summary, the grid of members and partitions, and below it the selected member in words.

    A refresh with `show` keeps the cursor, the view and the scroll position.
    """

    DEFAULT_CSS = """
    AssignmentPane { height: 1fr; }
    AssignmentPane > .assignment--more { color: $text-muted; }
    AssignmentPane > .assignment--unknown { height: 1fr; padding: 1 2; color: $text-muted; text-wrap: wrap; display: none; }
    AssignmentPane.-unknown > AssignmentGrid, AssignmentPane.-unknown > .assignment--more { display: none; }
    AssignmentPane.-unknown > .assignment--unknown { display: block; }
    """
    HELP_TITLE: ClassVar[str] = "In the assignment"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "next_view", "Before/after", tooltip="Show before and after, after, or before"),
        Binding("f", "fold", "Show ranges, or one column per partition", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._compared: tuple[Assignment | None, Assignment | None, tuple[TopicPartition, ...]] = (None, None, ())
        self._change: Moves | None = None
        self._names: Mapping[str, str] = {}
        self._title, self._reason = "", NOT_KNOWN
        self._is_ready = False
        self._view = View.BOTH
        self._head = PlainLine()
        self._sum = PlainLine()
        self._grid = AssignmentGrid()
        self._unknown = Static("", markup=False, classes="assignment--unknown")
        self._more = PlainLine(classes="assignment--more")

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._sum
        yield self._grid
        yield self._unknown
        yield self._more

    def on_mount(self) -> None:
        self._is_ready = True
        self._fill()

    # ---- used by screens

    def show(
        self,
        after: Assignment | None,
        before: Assignment | None = None,
        *,
        names: Mapping[str, str] | None = None,
        title: str = "Assignment",
        partitions: Iterable[TopicPartition] = (),
        reason: str = NOT_KNOWN,
    ) -> None:
        """Show an assignment and, with `before`, what moved.

        If `after` is None, the sentence `reason` is shown instead. `names` has a label for each member id, former members
        included; without a label the id is shown. `partitions` are all partitions that the group reads, so that unassigned
        ones appear even if no member owned them before.
        """
        self._title, self._reason = title, reason
        self._names = {member: cells.name(label) for member, label in (names or {}).items()}
        compared = (after, before, tuple(partitions))
        if compared != self._compared:
            self._compared = compared
            self._change = None if after is None else moves(after, before, compared[2])
        if self._is_ready:
            self._fill()

    @property
    def view(self) -> View:
        """The view that is shown: AFTER if there is no earlier assignment to compare with."""
        return self._view if self._change is not None and self._change.owners_before is not None else View.AFTER

    # ---- keys

    def focus(self, scroll_visible: bool = True) -> AssignmentPane:
        self._grid.focus(scroll_visible)
        return self

    def action_next_view(self) -> None:
        if self._change is not None and self._change.owners_before is not None:
            views = list(View)
            self._view = views[(views.index(self._view) + 1) % len(views)]
            self._show_view()

    def action_fold(self) -> None:
        self._grid.fold()

    def on_assignment_grid_moved(self) -> None:
        self._more.show(self._grid.in_words())

    def on_resize(self) -> None:
        if self._is_ready:
            self._show_view()

    # ---- rendering

    def _fill(self) -> None:
        self.set_class(self._change is None, "-unknown")
        if self._change is None:
            self._unknown.update(cells.name(self._reason))
        else:
            self._grid.show(self._change, self._names)
        self._show_view()

    def _show_view(self) -> None:
        title = cells.name(self._title)
        if self._change is None:
            self._head.show(Content.styled(title, "bold"))
            self._sum.show("")
            return
        is_compared = self._change.owners_before is not None
        self._head.show(self._with_legend(f"{title}: {self.view.value}" if is_compared else title))
        self._sum.show(in_words(self._change))
        self._grid.set_view(self.view)
        self._more.show(self._grid.in_words())

    def _with_legend(self, title: str) -> Content:
        """Append the legend, right-aligned, if all of it fits."""
        text = f"{KEPT} owned  {NONE} not owned"
        if self.view is View.BOTH:
            text = f"{KEPT} kept  {GAINED} gained  {LOST} lost  {NONE} not owned"
        room = self._head.content_size.width - cell_len(title) - 2
        legend = "" if cell_len(text) > room else "  " + cells.fitted(text, room, right=True)
        return Content.assemble((title, "bold"), (legend, "$text-muted"))
