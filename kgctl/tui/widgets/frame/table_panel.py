"""A table in a panel, with what every table has: a filter, sorting, marks, and a title that counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.filter import Field, Filter, parse
from kgctl.tui.widgets.frame.filter_bar import FilterBar
from kgctl.tui.widgets.frame.looks import Look
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.table.columns import Column, R
from kgctl.tui.widgets.table.rows import Rows

GONE, NO_MATCH = "gone", "no match now"


class TablePanel(Panel, Generic[R]):
    """`key` identifies a row, `name` is the text that a filter without a field looks at; `look` gives each row a glyph.

    `is_markable`: space marks rows. `no_match` replaces `empty` while a filter hides all rows.
    """

    HELP_TITLE: ClassVar[str] = "In the table"
    DEFAULT_CSS = """
    TablePanel { padding: 0; }
    TablePanel.-list Rows > .rows--cursor { background: $surface; }
    TablePanel.-list Rows:focus > .rows--cursor { background: $block-cursor-background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "slash", "filter", "Filter", key_display="/", tooltip="Filter by text, a regex, field:value; ! excludes"
        ),
        Binding("s", "sort_next", "Sort", tooltip="Sort by the next column"),
        Binding("S", "reverse", "Reverse the sort order", show=False),
        Binding("space", "mark", "Mark or unmark the row", show=False),
        Binding("M", "unmark", "Unmark all rows", show=False),
        Binding("escape", "clear_filter", "Clear the filter", show=False),
        Binding("escape", "leave_zoom", "Show all panels", show=False),
    ]

    class Marked(Message):
        """The marks have changed."""

        def __init__(self, panel: TablePanel[Any]) -> None:
            super().__init__()
            self.panel = panel

    def __init__(
        self,
        title: str,
        columns: Sequence[Column[R]],
        *,
        key: Callable[[R], str],
        name: Callable[[R], str] | None = None,
        fields: Sequence[Field[R]] = (),
        look: Callable[[R], Look] | None = None,
        has_header: bool = True,
        follows_top: bool = False,
        is_markable: bool = False,
        empty: str = "",
        no_match: str = "No row matches. Press Esc to show all rows.",
        number: int | None = None,
        least: tuple[int, int] | None = None,
        id: str | None = None,
    ) -> None:
        super().__init__(title, number=number, least=least, id=id, classes="" if has_header else "-list")
        self.table: Rows[R] = Rows(
            columns, key=key, empty=empty, look=look, has_header=has_header, follows_top=follows_top
        )
        name_of = name or key
        examples = ", ".join(["text", "regex", "!exclude", *(field.example for field in fields)])
        self.bar = FilterBar(lambda text: parse(text, name_of, fields), examples)
        self._title_word, self._empty, self._no_match, self._is_markable = title, empty, no_match, is_markable
        self._given: Sequence[R] = ()
        self._total: int | None = None
        self._more: tuple[str | Content, ...] = ()
        self._right: str | Content = ""
        self._gone: Callable[[R], str] | None = None

    def compose(self) -> ComposeResult:
        yield self.table
        yield self.bar

    @property
    def filter(self) -> Filter:
        return self.bar.filter

    def explain_empty(self, text: str) -> None:
        """Replace the text that is shown if there are no rows; it takes effect with the next rows."""
        self._empty = text

    def show(
        self,
        rows: Sequence[R],
        *,
        total: int | None = None,
        parts: Sequence[str | Content] = (),
        note: str | Content = "",
        gone: Callable[[R], str] | None = None,
    ) -> None:
        """Show the rows that match the filter. `total` counts those that the screen left out, too; `parts` go to the title.

        With `gone`, the row of the cursor stays if these rows do not have it any more; it is the word for that row. Use it for
        news about the same subject if actions aim at rows. A row that stops to match the filter stays in the same way.
        """
        self._given, self._total, self._more, self._right = rows, total, tuple(parts), note
        self._gone = gone
        self._show()

    def _show(self) -> None:
        had_cursor, gone = self.table.cursor_row is not None, self._gone
        shown = self.bar.filter.of(self._given)
        self.table.empty = self._no_match if self._all else self._empty
        self.table.show(shown, gone=self._word(gone) if gone else "")
        if self.bar.has_class("-visible"):
            self.bar.note(f"{len(shown):,} of {self._all:,}")
        self.show_counts()
        if had_cursor is not (self.table.cursor_row is not None):
            self.refresh_bindings()

    def _word(self, gone: Callable[[R], str]) -> str:
        row = self.table.cursor_row
        if row is None:
            return ""
        key = self.table.key_of(row)
        is_there = self.bar.filter.is_active and any(self.table.key_of(one) == key for one in self._given)
        return NO_MATCH if is_there else gone(row)

    def show_counts(self) -> None:
        """Write the title: how many rows, of how many, what the screen adds, marks, and the sort column."""
        shown, parts = len(self.table.rows) - bool(self.table.gone), list(self._more)
        counts = f"{shown:,}" if shown == self._all else f"{shown:,} of {self._all:,}"
        if self.bar.filter.is_active:
            parts.append(f"/{self.bar.filter.text}")
        if self.table.marked:
            parts.append(f"{glyphs.MARK} {len(self.table.marked):,} marked")
        if self.table.sorted_title:
            parts.append(self.table.sorted_title)
        self.show_title(f"{self._title_word} {counts}", *parts, note=self._right)

    @property
    def _all(self) -> int:
        return len(self._given) if self._total is None else self._total

    def on_filter_bar_changed(self, event: FilterBar.Changed) -> None:
        self._gone = None
        self._show()

    def on_filter_bar_left(self, event: FilterBar.Left) -> None:
        event.stop()
        self.table.focus()

    def on_rows_sorted(self, event: Rows.Sorted) -> None:
        self.show_counts()

    # ---- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "clear_filter":
            return self.bar.filter.is_active
        if action in ("mark", "unmark") and not self._is_markable:
            return False
        if action in ("filter", "mark", "unmark", "sort_next", "reverse") and self.bar.is_typing:
            return False
        return super().check_action(action, parameters)

    def action_filter(self) -> None:
        self.bar.open()

    def action_clear_filter(self) -> None:
        self.bar.action_clear()

    def action_sort_next(self) -> None:
        self.table.sort_next()

    def action_reverse(self) -> None:
        self.table.reverse()

    def action_mark(self) -> None:
        self.table.toggle_mark()
        self.show_counts()
        self.post_message(self.Marked(self))

    def action_unmark(self) -> None:
        self.table.unmark_all()
        self.show_counts()
        self.post_message(self.Marked(self))
