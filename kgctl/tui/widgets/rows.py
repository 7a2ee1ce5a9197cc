"""A table of any number of rows: only the lines that are seen are drawn, and a refresh moves neither cursor nor columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kgctl.tui.cells import fitted
from kgctl.tui.widgets.columns import GAP, Column, R, in_order, laid_out
from kgctl.tui.widgets.moving import MOVING

MARK, NO_MARK = "\u25cf ", "  "
RISING, FALLING = "\u2191", "\u2193"


class Rows(ScrollView, Generic[R], can_focus=True, inherit_bindings=False):
    """Rows under a header that stays. `key` tells a row from the others for as long as it is there."""

    HELP_TITLE: ClassVar[str] = "In the table"
    STYLES: ClassVar[tuple[str, ...]] = ("good", "warn", "bad", "dim", "strong")
    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--header", "rows--cursor", *(f"rows--{style}" for style in STYLES)}
    DEFAULT_CSS = """
    Rows {
        height: 1fr;
        background: $surface;
        color: $foreground;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & > .rows--header { color: $text-muted; text-style: bold; }
        & > .rows--cursor { background: $panel; }
        & > .rows--good { color: $text-success; }
        & > .rows--warn { color: $text-warning; }
        & > .rows--bad { color: $text-error; text-style: bold; }
        & > .rows--dim { color: $text-muted; }
        & > .rows--strong { text-style: bold; }
        &:focus > .rows--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVING,
        Binding("enter", "choose", "Open", show=False),
    ]

    class Moved(Message):
        """The cursor is on another row, on none, or its row says something else."""

        def __init__(self, rows: Rows[Any], row: Any) -> None:
            super().__init__()
            self.rows, self.row = rows, row

        @property
        def control(self) -> Rows[Any]:
            return self.rows

    class Chosen(Message):
        """A row is to be opened."""

        def __init__(self, rows: Rows[Any], row: Any) -> None:
            super().__init__()
            self.rows, self.row = rows, row

        @property
        def control(self) -> Rows[Any]:
            return self.rows

    def __init__(
        self,
        columns: Sequence[Column[R]],
        *,
        key: Callable[[R], str],
        empty: str = "",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.columns = tuple(columns)
        self.marked: set[str] = set()
        self.empty = empty
        self._key = key
        self._given: Sequence[R] = ()
        self._rows: list[R] = []
        self._cursor = 0
        self._sorted: Column[R] | None = None
        self._descending = False
        self._layout_at: tuple[int, list[tuple[Column[R], int]]] = (-1, [])
        self._drawn: dict[int, Strip] = {}

    # ---- what it shows

    @property
    def rows(self) -> Sequence[R]:
        """In the order in which they are shown."""
        return self._rows

    @property
    def cursor_row(self) -> R | None:
        return self._rows[self._cursor] if self._rows else None

    @property
    def sorted_by(self) -> tuple[str, bool] | None:
        """The key of the column, and whether it falls."""
        return (self._sorted.key, self._descending) if self._sorted else None

    @property
    def seen(self) -> set[str]:
        """The keys of the columns that there is room for."""
        return {column.key for column, _ in self._laid_out()}

    def width_of(self, key: str) -> int:
        """How many cells the column has; 0 if there is no room for it."""
        return next((width for column, width in self._laid_out() if column.key == key), 0)

    def show(self, rows: Sequence[R]) -> None:
        """Show other rows. The cursor stays on its row, and at its place if that row has gone."""
        before = self.cursor_row
        key = None if before is None else self._key(before)
        was_at = self._cursor - self.scroll_offset.y
        self._given = rows
        self._rows = in_order(rows, self._sorted, self._descending)
        places = {self._key(row): place for place, row in enumerate(self._rows)} if key is not None else {}
        moved = places.get(key) if key is not None else None
        self._cursor = max(0, min(self._cursor, len(self._rows) - 1)) if moved is None else moved
        self.virtual_size = Size(self.size.width, len(self._rows) + 1)
        if moved is not None and self.scroll_offset.y:
            # Rows that came or went above it do not move it on the screen.
            self.scroll_to(y=max(0, self._cursor - was_at), animate=False, force=True, immediate=True)
        self._refresh_changed()
        after = self.cursor_row
        if (None if after is None else self._key(after)) != key or after != before:
            self.post_message(self.Moved(self, after))

    def sort_by(self, key: str | None, descending: bool | None = None) -> None:
        """Sort by a column, from now on; None is the order in which rows are given to `show`."""
        self._sorted = next((column for column in self.columns if column.key == key and column.order), None)
        self._descending = bool(descending if descending is not None else self._sorted and self._sorted.falling)
        # From the given order: equal rows stand as they will after the next refresh.
        self.show(self._given)

    def sort_next(self) -> None:
        """Sort by the next of the columns that are seen, from the last on by the first."""
        columns = [column for column, _ in self._laid_out() if column.order]
        at = next((place for place, column in enumerate(columns) if column is self._sorted), -1)
        if columns:
            self.sort_by(columns[(at + 1) % len(columns)].key)

    def reverse(self) -> None:
        """The same column the other way round."""
        if self._sorted is not None:
            self.sort_by(self._sorted.key, not self._descending)

    def put_cursor(self, key: str) -> bool:
        """False if there is no such row."""
        for place, row in enumerate(self._rows):
            if self._key(row) == key:
                self._go_to(place)
                return True
        return False

    # ---- keys and mouse

    def action_move(self, by: int) -> None:
        self._go_to(self._cursor + by)

    def action_page(self, pages: float) -> None:
        self._go_to(self._cursor + round(pages * max(1, self.size.height - 1)))

    def action_go(self, place: int) -> None:
        self._go_to(place if place >= 0 else len(self._rows) - 1)

    def action_choose(self) -> None:
        if self.cursor_row is not None:
            self.post_message(self.Chosen(self, self.cursor_row))

    def toggle_mark(self) -> None:
        """Mark the row of the cursor or take its mark away, and go on to the next."""
        if self.cursor_row is not None:
            self.marked ^= {self._key(self.cursor_row)}
            self.refresh()
            self.action_move(1)

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is None:
            return
        if place.y == 0:
            self._sort_at(place.x)
            return
        row = self.scroll_offset.y + place.y - 1
        if row < len(self._rows):
            self._go_to(row)
            if event.chain == 2:
                self.action_choose()

    def _sort_at(self, x: int) -> None:
        left = len(NO_MARK)
        for column, width in self._laid_out():
            if left <= x < left + width + GAP and column.order:
                is_again = self._sorted is column
                self.sort_by(column.key, not self._descending if is_again else None)
            left += width + GAP

    def _go_to(self, place: int) -> None:
        place = max(0, min(place, len(self._rows) - 1))
        if place != self._cursor:
            self._cursor = place
            self.post_message(self.Moved(self, self.cursor_row))
            self.refresh()
        height = max(1, self.size.height - 1)
        if place < self.scroll_offset.y:
            self.scroll_to(y=place, animate=False, force=True, immediate=True)
        elif place >= self.scroll_offset.y + height:
            self.scroll_to(y=place - height + 1, animate=False, force=True, immediate=True)

    # ---- drawing

    def on_resize(self, event: events.Resize) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows) + 1)
        self._go_to(self._cursor)

    def _laid_out(self) -> list[tuple[Column[R], int]]:
        room = self.scrollable_content_region.width - len(NO_MARK)
        if self._layout_at[0] != room:
            self._layout_at = (room, laid_out(self.columns, room))
        return self._layout_at[1]

    def render_line(self, y: int) -> Strip:
        self._drawn[y] = strip = self._line(y)
        return strip

    def _refresh_changed(self) -> None:
        """Draw only what is no longer as it was: a refresh over SSH costs what has changed."""
        height = self.size.height
        changed = [y for y in range(height) if self._drawn.get(y) != self._line(y)]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        base = self.rich_style
        if y == 0:
            return self._header().adjust_cell_length(width, base)
        place = self.scroll_offset.y + y - 1
        if place >= len(self._rows):
            note = self.empty if not self._rows and y == 2 else ""
            style = base + self.get_component_rich_style("rows--dim", partial=True)
            return Strip([Segment(fitted(NO_MARK + note, width), style)], width)
        row = self._rows[place]
        line = base
        if place == self._cursor:
            line += self.get_component_rich_style("rows--cursor", partial=True)
        segments = [Segment(MARK if self._key(row) in self.marked else NO_MARK, line)]
        for column, room in self._laid_out():
            segments.append(Segment(fitted(column.text(row), room, right=column.right), self._style(column, row, line)))
            segments.append(Segment(" " * GAP, line))
        return Strip(segments).adjust_cell_length(width, line)

    def _style(self, column: Column[R], row: R, line: Style) -> Style:
        name = column.style(row)
        if not name:
            return line
        own = self.get_component_rich_style(f"rows--{name}", partial=True)
        is_lit = self.has_focus and self.cursor_row is row
        # On the cursor its own colours stay readable; the weight of the text is kept.
        return line + (Style(bold=own.bold, dim=own.dim) if is_lit else own)

    def _header(self) -> Strip:
        style = self.rich_style + self.get_component_rich_style("rows--header", partial=True)
        segments = [Segment(NO_MARK, style)]
        for column, room in self._laid_out():
            title = column.title
            if column is self._sorted:
                title += FALLING if self._descending else RISING
            segments.append(Segment(fitted(title, room, right=column.right) + " " * GAP, style))
        return Strip(segments)

    def region_of_cursor(self) -> Region:
        """Where the row of the cursor is, in the cells of this widget."""
        return Region(0, self._cursor - self.scroll_offset.y + 1, self.size.width, 1)
