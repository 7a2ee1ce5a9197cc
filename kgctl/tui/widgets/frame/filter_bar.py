"""The input line for a filter; it stays visible while a filter is active."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from kgctl.tui.widgets.frame.filter import EVERYTHING, BadFilter, Filter


class FilterBar(Horizontal):
    """`filter` is the last valid filter; it stays active while the user types an invalid one. `parse` raises BadFilter."""

    DEFAULT_CSS = """
    FilterBar {
        height: 1; display: none; padding: 0 1; background: $panel;
        &.-visible { display: block; }
        & > #slash { width: 1; color: $primary; text-style: bold; }
        & > Input { width: 1fr; min-width: 12; background: $panel; color: $foreground; }
        & > #filter-note { width: auto; max-width: 80%; height: 1; padding-left: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        &.-bad > #filter-note { color: $text-error; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "keep", "Keep the filter", priority=True),
        Binding("down", "keep", "Keep the filter", show=False),
        Binding("escape", "clear", "Clear filter"),
    ]

    class Changed(Message):
        """The active filter has changed."""

        def __init__(self, filter: Filter) -> None:
            super().__init__()
            self.filter = filter

    class Left(Message):
        """The user has finished typing."""

    def __init__(self, parse: Callable[[str], Filter], placeholder: str, id: str | None = None) -> None:
        super().__init__(id=id)
        self.filter = EVERYTHING
        self._parse = parse
        self._placeholder = placeholder

    def compose(self) -> ComposeResult:
        yield Static("/", id="slash", markup=False)
        yield Input(compact=True, select_on_focus=False, placeholder=self._placeholder)
        yield Static("", id="filter-note", markup=False)

    @property
    def is_typing(self) -> bool:
        return self.query_one(Input).has_focus

    def open(self) -> None:
        self.set_class(True, "-visible")
        # Widget.focus would take effect later; the next key already belongs to this input.
        typed = self.query_one(Input)
        self.screen.set_focus(typed)
        # What is typed next replaces an old filter; an arrow key edits it.
        typed.action_select_all()

    def show(self, text: str) -> None:
        """Filter by this text."""
        self._put(text)
        self.set_class(self.filter.is_active, "-visible")

    def note(self, text: str) -> None:
        """Show how many rows match. An error about an invalid filter stays until it is corrected."""
        if not self.has_class("-bad"):
            self.query_one("#filter-note", Static).update(text)

    def action_keep(self) -> None:
        """Return to the table. An invalid text is replaced with the active filter."""
        self._put(self.filter.text if self.filter.is_active else "")
        self.set_class(self.filter.is_active, "-visible")
        self.post_message(self.Left())

    def action_clear(self) -> None:
        self._put("")
        self.set_class(False, "-visible")
        self.post_message(self.Left())

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._apply(event.value)

    def _put(self, text: str) -> None:
        typed = self.query_one(Input)
        # Apply it now; the Changed message of the input would arrive after the line is hidden.
        with typed.prevent(Input.Changed):
            typed.value = text
        self._apply(text)

    def _apply(self, text: str) -> None:
        try:
            wanted = self._parse(text)
        except BadFilter as error:
            self.set_class(True, "-bad")
            self.query_one("#filter-note", Static).update(str(error))
            return
        was_bad = self.has_class("-bad")
        self.set_class(False, "-bad")
        if wanted.text != self.filter.text or was_bad:
            self.filter = wanted
            self.post_message(self.Changed(wanted))
