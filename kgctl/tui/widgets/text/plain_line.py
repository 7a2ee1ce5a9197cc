"""One line of plain text that is redrawn only if it has changed."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class PlainLine(Static):
    """Text without markup; an ellipsis ends a text that does not fit. The text must be printable."""

    DEFAULT_CSS = """
    PlainLine { height: 1; padding: 0 2; color: $foreground; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__("", markup=False, classes=classes)

    def show(self, text: str | Content) -> None:
        if self.content != text:
            self.update(text, layout=False)
