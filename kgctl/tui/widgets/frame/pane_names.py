"""The names of a screen's panes with their keys; the current one is highlighted, and a click selects another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.app import RenderResult
from textual.message import Message
from textual.widget import Widget


class PaneNames(Widget):
    """One line of names with the keys 1, 2, ...; `active` is the index of the current pane."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"panes--active", "panes--other"}
    DEFAULT_CSS = """
    PaneNames {
        height: 1;
        padding: 0 1;
        background: $panel;
        & > .panes--active { color: $primary; text-style: bold; }
        & > .panes--other { color: $secondary; }
    }
    """

    class Chosen(Message):
        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._names = tuple(names)
        self.active = 0

    def show(self, active: int) -> None:
        self.active = active
        self.refresh()

    def render(self) -> RenderResult:
        text = Text(no_wrap=True)
        for place, label in enumerate(self._labels()):
            name = "active" if place == self.active else "other"
            text.append(label, self.get_component_rich_style(f"panes--{name}", partial=True))
        return text

    def on_click(self, event: events.Click) -> None:
        left = event.get_content_offset(self)
        right = 0
        for place, label in enumerate(self._labels()):
            right += cell_len(label)
            if left is not None and left.x < right:
                self.post_message(self.Chosen(place))
                return

    def _labels(self) -> list[str]:
        """Each as wide as when it is highlighted, so that nothing moves when another is selected."""
        return [
            f"[{place + 1} {name}] " if place == self.active else f" {place + 1} {name}  "
            for place, name in enumerate(self._names)
        ]
