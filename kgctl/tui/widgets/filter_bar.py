"""The line in which a filter is typed, and which shows the one in force as long as there is one."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from kgctl.tui.filter import EVERYTHING, BadFilter, Filter, parse


class FilterBar(Horizontal):
    """`filter` is the last one that could be understood; it is in force while the next one is typed."""

    DEFAULT_CSS = """
    FilterBar {
        height: 1; display: none; padding: 0 1; background: $panel;
        &.-seen { display: block; }
        & > #slash { width: 1; color: $primary; text-style: bold; }
        & > Input { width: 1fr; min-width: 12; background: $panel; color: $foreground; }
        & > #filter-note { width: auto; max-width: 80%; height: 1; padding-left: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        &.-bad > #filter-note { color: $text-error; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "keep", "Keep the filter", priority=True),
        Binding("down", "keep", "Keep the filter", show=False),
        Binding("escape", "clear", "No filter"),
    ]

    class Changed(Message):
        """Another filter is in force."""

        def __init__(self, filter: Filter) -> None:
            super().__init__()
            self.filter = filter

    class Left(Message):
        """Nobody types any more."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.filter = EVERYTHING

    def compose(self) -> ComposeResult:
        yield Static("/", id="slash", markup=False)
        yield Input(compact=True, select_on_focus=False, placeholder="text, regex, or ! and what to leave out")
        yield Static("", id="filter-note", markup=False)

    @property
    def is_typing(self) -> bool:
        return self.query_one(Input).has_focus

    def open(self) -> None:
        self.set_class(True, "-seen")
        # Not Widget.focus, which waits: what is typed next is meant for this line.
        self.screen.set_focus(self.query_one(Input))

    def note(self, text: str) -> None:
        """How much passes; a word about a bad expression stays until it is mended."""
        if not self.has_class("-bad"):
            self.query_one("#filter-note", Static).update(text)

    def action_keep(self) -> None:
        """The keys go back to the table. What could not be understood gives way to what is in force."""
        self._put(self.filter.text if self.filter.pattern is not None else "")
        self.set_class(self.filter.pattern is not None, "-seen")
        self.post_message(self.Left())

    def action_clear(self) -> None:
        self._put("")
        self.set_class(False, "-seen")
        self.post_message(self.Left())

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._take(event.value)

    def _put(self, text: str) -> None:
        typed = self.query_one(Input)
        # Taken here and now: the message about it comes after the line is gone.
        with typed.prevent(Input.Changed):
            typed.value = text
        self._take(text)

    def _take(self, text: str) -> None:
        try:
            wanted = parse(text)
        except BadFilter as error:
            self.set_class(True, "-bad")
            self.query_one("#filter-note", Static).update(str(error))
            return
        was_bad = self.has_class("-bad")
        self.set_class(False, "-bad")
        if wanted != self.filter or was_bad:
            self.filter = wanted
            self.post_message(self.Changed(wanted))
