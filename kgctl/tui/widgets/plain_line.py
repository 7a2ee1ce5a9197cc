"""One line of plain text that says the same again without being drawn again."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class PlainLine(Static):
    """What does not fit ends in an ellipsis; nothing in the text is taken for markup. It must be printable."""

    DEFAULT_CSS = """
    PlainLine { height: 1; padding: 0 2; color: $foreground; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__("", markup=False, classes=classes)

    def tell(self, text: str | Content) -> None:
        if self.content != text:
            self.update(text, layout=False)
