"""The finder: type a part of a name, choose with the arrows, open with Enter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Input

from kgctl.tui.finder.ranking import Found, Source, find
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows

MOST = 200


class FoundRows(Rows[Found]):
    """It has the cursor while the input beside it has the focus."""

    DEFAULT_CSS = """
    FoundRows { height: 1fr; }
    FoundRows > .rows--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
    """
    can_focus = False

    @property
    def is_active(self) -> bool:
        return True


class Finder(ModalScreen[Found]):
    """The result is what the user has chosen; nothing happens before that."""

    DEFAULT_CSS = """
    Finder {
        align: center top;
        & > Panel { width: 84; max-width: 100%; height: 100%; max-height: 28; margin-top: 1; }
        & Input { background: $panel; color: $foreground; margin-bottom: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close"),
        Binding("enter", "choose", "Open", priority=True),
        Binding("down,ctrl+n", "move(1)", "Down", priority=True),
        Binding("up,ctrl+p", "move(-1)", "Up", priority=True),
        Binding("pagedown", "page(1)", "Page down", priority=True),
        Binding("pageup", "page(-1)", "Page up", priority=True),
    ]

    def __init__(self, sources: Sequence[Source]) -> None:
        super().__init__()
        self._sources = sources
        self.input = Input(compact=True, placeholder="a group, a topic, a screen or an action")
        self.rows: Rows[Found] = FoundRows(
            [
                Column("name", "NAME", lambda row: row.name, 30, flex=1, most=200),
                Column("kind", "KIND", lambda row: row.source.kind, 6, style=lambda _: "dim"),
                Column("note", "", lambda row: row.source.note(row.place), 16, style=lambda _: "dim"),
            ],
            key=lambda row: f"{row.source.kind} {row.name}",
            empty="Nothing has this name.",
            has_header=False,
        )
        self.panel = Panel("Find", self.input, self.rows)

    def compose(self) -> ComposeResult:
        yield self.panel

    def on_mount(self) -> None:
        self.set_focus(self.input)
        self._show()

    def on_key(self, event: events.Key) -> None:
        # A key that was typed in one go with the one that opened the finder.
        if self.focused is None and event.character is not None and event.is_printable:
            event.stop()
            self.input.insert_text_at_cursor(event.character)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._show()
        self.rows.go_to(0)

    def search(self, sources: Sequence[Source]) -> None:
        """Search these from now on. The cursor stays where it is."""
        self._sources = sources
        self._show()

    def _show(self) -> None:
        found, count = find(self.input.value, self._sources, MOST)
        self.rows.show(found)
        self.panel.show_title(f"Find {count:,}", note="\u2191 \u2193 Enter Esc")

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        event.stop()
        self.dismiss(event.row)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        event.stop()

    def action_choose(self) -> None:
        if self.rows.cursor_row is not None:
            self.dismiss(self.rows.cursor_row)

    def action_move(self, by: int) -> None:
        self.rows.action_move(by)

    def action_page(self, pages: int) -> None:
        self.rows.action_page(pages)
