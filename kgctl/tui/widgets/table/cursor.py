"""A scrollable list of lines under a fixed header, with a cursor that keys and mouse move."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView


class CursorView(ScrollView, can_focus=True, inherit_bindings=False):
    """A subclass renders `line_count` lines below header_lines header lines, and reacts to `cursor_moved`."""

    header_lines: int = 1
    DEFAULT_CSS = """
    CursorView {
        height: 1fr;
        background: $surface;
        color: $foreground;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False),
        Binding("home", "go(0)", "First", show=False),
        Binding("end,G", "go(-1)", "Last", show=False),
    ]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.cursor = 0

    # ---- implemented by a subclass

    @property
    def line_count(self) -> int:
        """How many lines there are below the header."""
        raise NotImplementedError

    def cursor_moved(self) -> None:
        """Called after the cursor has moved to another line."""
        raise NotImplementedError

    def header_clicked(self, x: int) -> None:
        """Called after a click on the header, at this cell."""

    def line_opened(self) -> None:
        """Called after a double click on a line; the cursor is on it."""

    # ---- keys and mouse

    def action_move(self, by: int) -> None:
        self.go_to(self.cursor + by)

    def action_page(self, pages: float) -> None:
        self.go_to(self.cursor + round(pages * self.page_lines))

    def action_go(self, line: int) -> None:
        self.go_to(line if line >= 0 else self.line_count - 1)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y < self.header_lines:
            self.header_clicked(offset.x)
            return
        line = self.scroll_offset.y + offset.y - self.header_lines
        if line < self.line_count:
            self.go_to(line)
            if event.chain == 2:
                self.line_opened()

    # ---- cursor and scrolling

    @property
    def page_lines(self) -> int:
        """How many lines fit below the header."""
        return max(1, self.size.height - self.header_lines)

    @property
    def cursor_offset(self) -> int:
        """The line of the cursor, counted from the first visible line."""
        return self.cursor - self.scroll_offset.y

    @property
    def cursor_region(self) -> Region:
        """The line of the cursor in the cells of this widget."""
        return Region(0, self.cursor_offset + self.header_lines, self.size.width, 1)

    def go_to(self, line: int) -> None:
        """Move the cursor to a line, or to the nearest one that exists, and scroll it into view."""
        line = max(0, min(line, self.line_count - 1))
        if line != self.cursor:
            self.cursor = line
            self.cursor_moved()
            self.refresh()
        if line < self.scroll_offset.y:
            self._scroll_to_line(line)
        elif line >= self.scroll_offset.y + self.page_lines:
            self._scroll_to_line(line - self.page_lines + 1)

    def fit_lines(self) -> None:
        """Adapt the scrollable size to `line_count`."""
        self.virtual_size = Size(self.size.width, self.line_count + self.header_lines)

    def keep_cursor_offset(self, offset: int) -> None:
        """Scroll so that the cursor stays where it was on the screen, although lines above it were added or removed."""
        if self.scroll_offset.y:
            self._scroll_to_line(max(0, self.cursor - offset))

    def _scroll_to_line(self, line: int) -> None:
        self.scroll_to(y=line, animate=False, force=True, immediate=True)
