"""Text that adapts to its width: parts that do not fit are left out as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widget import Widget


class Line(Widget):
    """Text that is composed for the width that the widget has when it is rendered."""

    DEFAULT_CSS = """
    Line { padding: 0 1; }
    """

    def text(self, width: int) -> Content:
        raise NotImplementedError

    def render(self) -> Content:
        return self.text(max(1, self.content_size.width))


class Parts(Line):
    """One line of parts, the most important first; those that do not fit are left out."""

    DEFAULT_CSS = """
    Parts { height: 1; color: $text-muted; }
    """

    def __init__(self, between: str, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._between = between
        self.parts: tuple[str, ...] = ()

    def show(self, parts: Sequence[str]) -> None:
        """Show these parts; without any, the line disappears."""
        if tuple(parts) != self.parts:
            self.parts = tuple(parts)
            self.refresh()
        self.display = bool(parts)

    def text(self, width: int) -> Content:
        return as_fits(Content(), [Content(part) for part in self.parts], "", self._between, width)


def as_fits(text: Content, parts: Sequence[Content], first: str, between: str, width: int) -> Content:
    """The text with as many of the parts, in their order, as fit into the width; no part is cut."""
    for place, part in enumerate(parts):
        longer = text + Content(between if place else first) + part
        if longer.cell_length > width:
            break
        text = longer
    return text
