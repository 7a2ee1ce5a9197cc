"""A sheet of rows under a header: labels stay, columns scroll sideways, and only the lines that are seen are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kgctl.tui.cells import fitted, name
from kgctl.tui.widgets import matrix
from kgctl.tui.widgets.matrix import GAINED, GAP, LOST, Line, Row, Sheet, View
from kgctl.tui.widgets.moves import Moves
from kgctl.tui.widgets.moving import MOVING

CURSOR, NO_CURSOR = "\u203a ", "  "
_HEADER = 2


class AssignmentGrid(ScrollView, can_focus=True, inherit_bindings=False):
    """`show` members and partitions, `see` a view of them; the cursor stays on its row."""

    HELP_TITLE: ClassVar[str] = "In the grid"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"grid--cursor", *(f"grid--{style}" for style in matrix.STYLES)}
    DEFAULT_CSS = """
    AssignmentGrid {
        height: 1fr;
        background: $surface;
        color: $foreground;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
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
        *MOVING,
        Binding("less_than_sign,shift+left", "sideways(-1)", "Columns to the left", show=False, key_display="<"),
        Binding("greater_than_sign,shift+right", "sideways(1)", "Columns to the right", show=False, key_display=">"),
    ]

    class Moved(Message):
        """The cursor is on another row, or its row says something else."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._change: Moves | None = None
        self._labels: Mapping[str, str] = {}
        self._view = View.AFTER
        self._folded: bool | None = None
        self._sheet: Sheet | None = None
        self._cursor = 0
        self._left = 0

    # ---- what it shows

    def show(self, change: Moves, labels: Mapping[str, str]) -> None:
        """`labels` are printable, by member id."""
        if (change, labels) != (self._change, self._labels):
            self._change, self._labels = change, labels
            self._lay_out(is_refresh=True)

    def see(self, view: View) -> None:
        if view is not self._view:
            self._view = view
            self._lay_out()

    def fold(self) -> None:
        """Ranges instead of columns, or columns instead of ranges, whatever fits."""
        if self._sheet is not None:
            self._folded = not self._sheet.is_folded
            self._left = 0
            self._lay_out()

    @property
    def cursor_row(self) -> Row | None:
        rows = self._sheet.rows if self._sheet else ()
        return rows[self._cursor] if self._cursor < len(rows) else None

    def in_words(self) -> str:
        """The row of the cursor: "worker-1: 4 (+1) partitions, orders 0-2 \u25b23"."""
        row, change = self.cursor_row, self._change
        if row is None or change is None:
            return ""
        topics = [
            f"{name(topic)} " + " ".join((sign if sign in (GAINED, LOST) else "") + numbers for sign, numbers in found)
            for topic, found in matrix.by_topic(change, row, self._view)
        ]
        said = " \u00b7 ".join([matrix.tally(change, row, self._view), *topics])
        return f"{row.label[0][2:]}: {said}"

    # ---- keys and mouse

    def action_move(self, by: int) -> None:
        self._go_to(self._cursor + by)

    def action_page(self, pages: float) -> None:
        self._go_to(self._cursor + round(pages * self._height))

    def action_go(self, place: int) -> None:
        self._go_to(place if place >= 0 else len(self._sheet.rows if self._sheet else ()) - 1)

    def action_sideways(self, by: int) -> None:
        """By half of what is seen, so that the eye can follow."""
        self._left = self._left_at_most(self._left + by * max(1, self._room // 2))
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is not None and place.y >= _HEADER and self._sheet is not None:
            row = self.scroll_offset.y + place.y - _HEADER
            if row < len(self._sheet.rows):
                self._go_to(row)

    def _go_to(self, place: int) -> None:
        place = max(0, min(place, len(self._sheet.rows if self._sheet else ()) - 1))
        if place != self._cursor:
            self._cursor = place
            self.post_message(self.Moved())
            self.refresh()
        if place < self.scroll_offset.y:
            self.scroll_to(y=place, animate=False, force=True, immediate=True)
        elif place >= self.scroll_offset.y + self._height:
            self.scroll_to(y=place - self._height + 1, animate=False, force=True, immediate=True)

    # ---- layout

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out()

    def _lay_out(self, is_refresh: bool = False) -> None:
        if self._change is None or not self.size.width:
            return
        before, was_at = self.cursor_row, self._cursor - self.scroll_offset.y
        room = self.scrollable_content_region.width - len(NO_CURSOR)
        self._sheet = matrix.sheet(self._change, self._labels, self._view, room, self._folded)
        places = {row.key: place for place, row in enumerate(self._sheet.rows)}
        self._cursor = places.get(before.key, self._cursor) if before is not None else 0
        self._left = self._left_at_most(self._left)
        self.virtual_size = Size(self.size.width, len(self._sheet.rows) + _HEADER)
        if is_refresh and self.scroll_offset.y:
            # Rows that come or go above it do not move it on the screen.
            self.scroll_to(y=max(0, self._cursor - was_at), animate=False, force=True, immediate=True)
        if not is_refresh or 0 <= was_at < self._height:
            # Who has scrolled away from the cursor is not brought back by a refresh.
            self._go_to(self._cursor)
        self.post_message(self.Moved())
        self.refresh()

    @property
    def _height(self) -> int:
        return max(1, self.size.height - _HEADER)

    @property
    def _room(self) -> int:
        """Cells right of the labels."""
        used = len(NO_CURSOR) + (self._sheet.label_width if self._sheet else 0) + GAP
        return max(0, self.scrollable_content_region.width - used)

    def _left_at_most(self, left: int) -> int:
        return max(0, min(left, (self._sheet.width if self._sheet else 0) - self._room))

    # ---- drawing

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        shown = self._sheet
        if shown is None:
            return Strip.blank(width, self.rich_style)
        if y < _HEADER:
            title = "MEMBER" if y == _HEADER - 1 else self._sideways_hint(shown)
            return self._line(NO_CURSOR, (title, "head"), shown.header(self._left)[y], width, False)
        place = self.scroll_offset.y + y - _HEADER
        if place >= len(shown.rows):
            note = "No member has a partition." if not shown.rows and place == 0 else ""
            return self._line(NO_CURSOR, ("", ""), ((note, "none"),), width, False)
        row, is_lit = shown.rows[place], place == self._cursor
        return self._line(CURSOR if is_lit and self.has_focus else NO_CURSOR, row.label, shown.body(row), width, is_lit)

    def _sideways_hint(self, shown: Sheet) -> str:
        if shown.width <= self._room:
            return ""
        left, right = self._left > 0, self._left < shown.width - self._room
        return f"{'<' if left else ' '} more {'>' if right else ' '}"

    def _line(self, mark: str, label: tuple[str, str], body: Line, width: int, is_lit: bool) -> Strip:
        base = self.rich_style
        if is_lit:
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
