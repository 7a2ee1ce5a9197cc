"""The grid of members and partitions: labels stay in place, columns scroll sideways, and only visible lines are rendered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from kgctl.tui.cells import fitted, name
from kgctl.tui.widgets.assignment import matrix
from kgctl.tui.widgets.assignment.matrix import GAINED, GAP, LOST, Line, Row, Sheet, View
from kgctl.tui.widgets.assignment.moves import Moves
from kgctl.tui.widgets.table.cursor import CursorView

CURSOR, NO_CURSOR = "\u203a ", "  "


class AssignmentGrid(CursorView):
    """`show` sets the assignment, `set_view` the view of it; the cursor stays on its row."""

    header_lines: int = 2

    HELP_TITLE: ClassVar[str] = "In the grid"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"grid--cursor", *(f"grid--{style}" for style in matrix.STYLES)}
    DEFAULT_CSS = """
    AssignmentGrid {
        & > .grid--head { color: $text-muted; text-style: bold; }
        & > .grid--none { color: $text-muted; }
        & > .grid--kept { color: $text-primary; }
        & > .grid--gained { color: $text-success; text-style: bold; }
        & > .grid--lost { color: $text-warning; text-style: bold; }
        & > .grid--bad { color: $text-error; text-style: bold; }
        & > .grid--cursor { background: $panel; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("less_than_sign,shift+left", "sideways(-1)", "Columns to the left", show=False, key_display="<"),
        Binding("greater_than_sign,shift+right", "sideways(1)", "Columns to the right", show=False, key_display=">"),
    ]

    class Moved(Message):
        """The cursor is on another row, or its row has changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._change: Moves | None = None
        self._labels: Mapping[str, str] = {}
        self._view = View.AFTER
        # Ranges need less room than columns.
        self._folded: bool | None = True
        self._sheet: Sheet | None = None
        self._left = 0

    # ---- contents

    def show(self, change: Moves, labels: Mapping[str, str]) -> None:
        """Show an assignment. `labels` are printable names by member id."""
        if (change, labels) != (self._change, self._labels):
            self._change, self._labels = change, labels
            self._lay_out(is_refresh=True)

    def set_view(self, view: View) -> None:
        if view is not self._view:
            self._view = view
            self._lay_out()

    def fold(self) -> None:
        """Switch between one column per partition and ranges, whether it fits or not."""
        if self._sheet is not None:
            self._folded = not self._sheet.is_folded
            self._left = 0
            self._lay_out()

    @property
    def cursor_row(self) -> Row | None:
        rows = self._sheet.rows if self._sheet else ()
        return rows[self.cursor] if self.cursor < len(rows) else None

    @property
    def line_count(self) -> int:
        return len(self._sheet.rows) if self._sheet else 0

    def in_words(self) -> str:
        """The row of the cursor: "worker-1: 4 (+1) partitions, orders 0-2 \u25b33"."""
        row, change = self.cursor_row, self._change
        if row is None or change is None:
            return ""
        topics = [
            f"{name(topic)} " + " ".join((sign if sign in (GAINED, LOST) else "") + numbers for sign, numbers in found)
            for topic, found in matrix.by_topic(change, row, self._view)
        ]
        text = " \u00b7 ".join([matrix.tally(change, row, self._view), *topics])
        return f"{row.label[0][2:]}: {text}"

    # ---- keys and mouse

    def cursor_moved(self) -> None:
        self.post_message(self.Moved())

    def action_sideways(self, by: int) -> None:
        """Scroll by half the visible width, so that the eye can follow."""
        self._left = self._left_at_most(self._left + by * max(1, self._room // 2))
        self.refresh()

    # ---- layout

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out()

    def _lay_out(self, is_refresh: bool = False) -> None:
        if self._change is None or not self.size.width:
            return
        before, offset = self.cursor_row, self.cursor_offset
        room = self.scrollable_content_region.width - len(NO_CURSOR)
        self._sheet = matrix.sheet(self._change, self._labels, self._view, room, self._folded)
        lines = {row.key: line for line, row in enumerate(self._sheet.rows)}
        self.cursor = lines.get(before.key, self.cursor) if before is not None else 0
        self._left = self._left_at_most(self._left)
        self.fit_lines()
        if is_refresh:
            self.keep_cursor_offset(offset)
        if not is_refresh or 0 <= offset < self.page_lines:
            # A refresh does not scroll back a user who has scrolled away from the cursor.
            self.go_to(self.cursor)
        self.post_message(self.Moved())
        self.refresh()

    @property
    def _room(self) -> int:
        """How many cells there are to the right of the labels."""
        used = len(NO_CURSOR) + (self._sheet.label_width if self._sheet else 0) + GAP
        return max(0, self.scrollable_content_region.width - used)

    def _left_at_most(self, left: int) -> int:
        return max(0, min(left, (self._sheet.width if self._sheet else 0) - self._room))

    # ---- rendering

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        shown = self._sheet
        if shown is None:
            return Strip.blank(width, self.rich_style)
        if y < self.header_lines:
            title = "MEMBER" if y == self.header_lines - 1 else self._sideways_hint(shown)
            return self._line(NO_CURSOR, (title, "head"), shown.header(self._left)[y], width, False)
        line = self.scroll_offset.y + y - self.header_lines
        if line >= len(shown.rows):
            note = "No member owns a partition." if not shown.rows and line == 0 else ""
            return self._line(NO_CURSOR, ("", ""), ((note, "none"),), width, False)
        row, is_cursor = shown.rows[line], line == self.cursor
        return self._line(
            CURSOR if is_cursor and self.has_focus else NO_CURSOR, row.label, shown.body(row), width, is_cursor
        )

    def _sideways_hint(self, shown: Sheet) -> str:
        if shown.width <= self._room:
            return ""
        left, right = self._left > 0, self._left < shown.width - self._room
        return f"{'<' if left else ' '} more {'>' if right else ' '}"

    def _line(self, mark: str, label: tuple[str, str], body: Line, width: int, is_cursor: bool) -> Strip:
        base = self.rich_style
        if is_cursor:
            base += self.get_component_rich_style("grid--cursor", partial=True)
        label_width = self._sheet.label_width if self._sheet else 0
        segments = [
            Segment(mark, base),
            Segment(fitted(label[0], label_width), self._styled(label[1], base)),
            Segment(" " * GAP, base),
        ]
        styles = {style: self._styled(style, base) for _, style in body}
        columns = Strip([Segment(text, styles[style]) for text, style in body])
        columns = columns.adjust_cell_length(max(columns.cell_length, self._left + self._room), base)
        return Strip.join([Strip(segments), columns.crop(self._left, self._left + self._room)]).adjust_cell_length(
            width, base
        )

    def _styled(self, style: str, base: Style) -> Style:
        return base + self.get_component_rich_style(f"grid--{style}", partial=True) if style else base
