"""A table of any number of rows. It renders only visible lines, and a refresh moves neither the cursor nor the columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from kgctl.tui.cells import fitted
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.badges import BADGES
from kgctl.tui.widgets.frame.looks import Look
from kgctl.tui.widgets.table.columns import GAP, Column, R, in_order, laid_out
from kgctl.tui.widgets.table.cursor import CursorView
from kgctl.tui.widgets.table.needs import Needs

MARK = glyphs.MARK


class Rows(CursorView, Generic[R]):
    """Rows of any type under a header line. `key` identifies a row across refreshes; `empty` is shown if there are no rows.

    Each line begins with a cell for its mark, and with `look` with a glyph. With `follows_top`, the cursor is on the first row
    while something else has the focus.
    """

    HELP_TITLE: ClassVar[str] = "In the table"
    # Beside these, cells may have the colour of a context.
    STYLES: ClassVar[tuple[str, ...]] = ("good", "warn", "bad", "dim", "strong")
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--header",
        "rows--cursor",
        *(f"rows--{style}" for style in (*STYLES, *BADGES)),
    }
    DEFAULT_CSS = """
    Rows {
        & > .rows--header { color: $text-muted; text-style: bold; }
        & > .rows--cursor { background: $panel; }
        & > .rows--good { color: $text-success; }
        & > .rows--warn { color: $text-warning; }
        & > .rows--bad { color: $text-error; text-style: bold; }
        & > .rows--dim { color: $text-muted; }
        & > .rows--strong { text-style: bold; }
        &:focus > .rows--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
    }
    """ + "\n".join(
        f"Rows > .rows--{color} {{ color: {badge.text}; background: {badge.filling}; }}"
        for color, badge in BADGES.items()
    )
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "Open", show=False)]

    class Moved(Message):
        """The cursor is on another row or on none, or its row has changed."""

        def __init__(self, rows: Rows[Any], row: Any) -> None:
            super().__init__()
            self.rows, self.row = rows, row

        @property
        def control(self) -> Rows[Any]:
            return self.rows

    class Chosen(Message):
        """The user opens a row."""

        def __init__(self, rows: Rows[Any], row: Any) -> None:
            super().__init__()
            self.rows, self.row = rows, row

        @property
        def control(self) -> Rows[Any]:
            return self.rows

    class Sorted(Message):
        """The user has chosen another order."""

    def __init__(
        self,
        columns: Sequence[Column[R]],
        *,
        key: Callable[[R], str],
        empty: str = "",
        look: Callable[[R], Look] | None = None,
        has_header: bool = True,
        follows_top: bool = False,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._follows_top, self._was_in_use = follows_top, False
        self.columns = tuple(columns)
        self.marked: set[str] = set()
        self.empty = empty
        self.header_lines = 1 if has_header else 0
        self._key, self._look = key, look
        self._gutter = 2 if look is None else 3
        self._given: Sequence[R] = ()
        self._rows: list[R] = []
        self._gone_line: int | None = None
        self.gone = ""
        self._sorted: Column[R] | None = None
        self._descending = False
        self._layout_at: tuple[object, list[tuple[Column[R], int]]] = (None, [])
        self._needs: Needs[R] = Needs()
        self._is_news = False
        self._shown_count = 0
        self._rendered: dict[int, Strip] = {}

    # ---- contents

    @property
    def rows(self) -> Sequence[R]:
        """The rows in the order in which they are shown."""
        return self._rows

    @property
    def line_count(self) -> int:
        return len(self._rows)

    @property
    def cursor_row(self) -> R | None:
        return self._rows[self.cursor] if self._rows else None

    @property
    def sorted_by(self) -> tuple[str, bool] | None:
        """The key of the sort column, and whether the order is descending."""
        return (self._sorted.key, self._descending) if self._sorted else None

    @property
    def is_active(self) -> bool:
        """Whether the line of the cursor has the colours of a cursor."""
        return self.has_focus

    @property
    def sorted_title(self) -> str:
        """The sort column and its direction as a title says them."""
        if self._sorted is None:
            return ""
        return self._sorted.title.lower() + (glyphs.FALLING if self._descending else glyphs.RISING)

    @property
    def visible_columns(self) -> set[str]:
        """The keys of the columns that fit."""
        # Not of the layout: texts that it measures may ask for this.
        return {column.key for column, _ in laid_out(self._wanted(), self._room)}

    def width_of(self, key: str) -> int:
        """The width of a column in cells; 0 if it does not fit."""
        return next((width for column, width in self._laid_out() if column.key == key), 0)

    def show(self, rows: Sequence[R], *, gone: str = "") -> None:
        """Replace the rows. The cursor stays on its row.

        If these rows do not have it, it stays nevertheless until the cursor moves on, dimmed and with the word `gone`: an
        action must not aim at what took its place. Without a word, the cursor stays at its line.
        """
        before, offset, was_gone = self.cursor_row, self.cursor_offset, self.gone
        key = None if before is None else self._key(before)
        is_top = self._follows_top and not self._is_in_use()
        self._given = rows
        self._rows = in_order(rows, self._sorted, self._descending)
        lines = {self._key(row): line for line, row in enumerate(self._rows)} if key is not None else {}
        line = lines.get(key) if key is not None else None
        self.gone, self._gone_line = "", None
        if is_top:
            line = offset = 0
        elif line is None and before is not None and gone:
            self.gone, self._gone_line = gone, min(self.cursor, len(self._rows))
            self._rows.insert(self._gone_line, before)
            line = self._gone_line
        self.cursor = max(0, min(self.cursor, len(self._rows) - 1)) if line is None else line
        self.fit_lines()
        if line is not None:
            self.keep_cursor_offset(offset)
        self._shown_count += 1
        self._is_news = True
        self._refresh_changed()
        after = self.cursor_row
        if (None if after is None else self._key(after)) != key or after != before or self.gone != was_gone:
            self._post_moved()

    def _is_in_use(self) -> bool:
        """Whether this has the focus, or had it when the terminal lost it."""
        if (focused := self.screen.focused) is not None:
            self._was_in_use = focused is self
        return self._was_in_use

    def sort_by(self, key: str | None, descending: bool | None = None) -> None:
        """Sort by a column, now and after each refresh; None keeps the order in which `show` gets the rows."""
        self._sorted = next((column for column in self.columns if column.key == key and column.order), None)
        self._descending = bool(descending if descending is not None else self._sorted and self._sorted.falling)
        # Sort the given order, so that equal rows already stand as they will after the next refresh.
        self.show(self._given, gone=self.gone)
        self.post_message(self.Sorted())

    def sort_next(self) -> None:
        """Sort by the next visible column; after the last one, by the first."""
        columns = [column for column, _ in self._laid_out() if column.order]
        at = next((place for place, column in enumerate(columns) if column is self._sorted), -1)
        if columns:
            self.sort_by(columns[(at + 1) % len(columns)].key)

    def reverse(self) -> None:
        """Sort by the same column in the other direction."""
        if self._sorted is not None:
            self.sort_by(self._sorted.key, not self._descending)

    def key_of(self, row: R) -> str:
        return self._key(row)

    def put_cursor(self, key: str) -> bool:
        """Move the cursor to the row with this key; False if there is none."""
        for line, row in enumerate(self._rows):
            if self._key(row) == key:
                self.go_to(line)
                return True
        return False

    # ---- keys and mouse

    def action_choose(self) -> None:
        if self.cursor_row is not None:
            self.post_message(self.Chosen(self, self.cursor_row))

    def toggle_mark(self) -> None:
        """Mark or unmark the row of the cursor and move to the next row."""
        if self.cursor_row is not None:
            self.marked ^= {self._key(self.cursor_row)}
            self.refresh()
            self.action_move(1)

    def unmark_all(self) -> None:
        self.marked.clear()
        self.refresh()

    def cursor_moved(self) -> None:
        line = self._gone_line
        if line is not None and self.cursor != line:
            self.gone, self._gone_line = "", None
            del self._rows[line]
            self.cursor -= self.cursor > line
            self.fit_lines()
        self._post_moved()

    def _post_moved(self) -> None:
        # A message does not bubble past its sender, which would be the widget around this table if it has shown rows.
        self.post_message(self.Moved(self, self.cursor_row).set_sender(self))

    def line_opened(self) -> None:
        self.action_choose()

    def header_clicked(self, x: int) -> None:
        left = self._gutter
        for column, width in self._laid_out():
            if left <= x < left + width + GAP and column.order:
                is_again = self._sorted is column
                self.sort_by(column.key, not self._descending if is_again else None)
            left += width + GAP

    # ---- rendering

    def on_resize(self, event: events.Resize) -> None:
        self.fit_lines()
        self.go_to(self.cursor)

    @property
    def _room(self) -> int:
        """The cells for columns: no text touches what is at the right of the table."""
        return self.scrollable_content_region.width - self._gutter - 1

    def _wanted(self) -> list[Column[R]]:
        return [column for column in self.columns if column.is_wanted is None or column.is_wanted()]

    def _laid_out(self) -> list[tuple[Column[R], int]]:
        wanted, room, top = self._wanted(), self._room, self.scroll_offset.y
        at = (room, len(wanted), top, self.page_lines, self._shown_count)
        if self._layout_at[0] != at:
            rows = self._rows[top : top + self.page_lines]
            self._needs.measure(wanted, rows, room=room, is_news=self._is_news)
            self._is_news = False
            self._layout_at = (at, laid_out(wanted, room, self._needs.cells))
        return self._layout_at[1]

    def render_line(self, y: int) -> Strip:
        self._rendered[y] = strip = self._line(y)
        return strip

    def _refresh_changed(self) -> None:
        """Redraw only the lines that differ: over SSH, a refresh should send only what has changed."""
        changed = [y for y in range(self.size.height) if self._rendered.get(y) != self._line(y)]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        base = self.rich_style
        if y < self.header_lines:
            return self._header().adjust_cell_length(width, base)
        place = self.scroll_offset.y + y - self.header_lines
        if place >= len(self._rows):
            note = self.empty if not self._rows and y == 2 * self.header_lines else ""
            style = base + self.get_component_rich_style("rows--dim", partial=True)
            return Strip([Segment(fitted(" " * self._gutter + note, width), style)], width)
        row = self._rows[place]
        line = base
        if place == self.cursor:
            line += self.get_component_rich_style("rows--cursor", partial=True)
        if place == self._gone_line:
            return self._gone(row, line).adjust_cell_length(width, line)
        segments = self._marks(row, line)
        for column, room in self._laid_out():
            text = fitted(column.cell(row, room), room, right=column.right)
            segments.append(Segment(text, self._style(column.style(row), row, line)))
            segments.append(Segment(" " * GAP, line))
        return Strip(segments).adjust_cell_length(width, line)

    def _gone(self, row: R, line: Style) -> Strip:
        """The line of the row that is gone, with the word in the last column that has room for it."""
        style, columns = self._style("dim", row, line), self._laid_out()
        wide = [column for column, room in columns[1:] if room >= len(self.gone)] or [columns[-1][0]]
        segments = [Segment(fitted(MARK if self._key(row) in self.marked else "", self._gutter), style)]
        for column, room in columns:
            text = self.gone if column is wide[-1] else column.cell(row, room)
            segments.append(Segment(fitted(text, room, right=column.right) + " " * GAP, style))
        return Strip(segments)

    def _marks(self, row: R, line: Style) -> list[Segment]:
        """What stands before the cells: the mark of the row, its glyph, a blank."""
        segments = [Segment(MARK if self._key(row) in self.marked else " ", line)]
        if self._look is not None:
            look = self._look(row)
            segments.append(Segment(look.glyph, self._style(look.style, row, line)))
        return [*segments, Segment(" ", line)]

    def _style(self, name: str, row: R, line: Style) -> Style:
        if not name:
            return line
        own = self.get_component_rich_style(f"rows--{name}", partial=True)
        is_highlighted = self.is_active and self.cursor_row is row
        # On the cursor line the cell keeps its weight and takes the colours of the cursor, which stay readable.
        return line + (Style(bold=own.bold, dim=own.dim) if is_highlighted else own)

    def _header(self) -> Strip:
        style = self.rich_style + self.get_component_rich_style("rows--header", partial=True)
        segments = [Segment(" " * self._gutter, style)]
        for column, room in self._laid_out():
            title, gap = column.title, " " * GAP
            if column is self._sorted:
                arrow = glyphs.FALLING if self._descending else glyphs.RISING
                # Where the title fills the column, the arrow stands in the gap.
                title, gap = (title + arrow, gap) if len(title) < room else (title, arrow + " " * (GAP - 1))
            segments.append(Segment(fitted(title, room, right=column.right) + gap, style))
        return Strip(segments)
