"""Text of several lines, of which each is wrapped beside what stands before it."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from textual.content import Content

from broker.light_named_tuples import NamedTuple
from kgctl.tui.widgets.text.line import Line

MIN_TEXT = 10


class Entry(NamedTuple):
    """A line of text: its lines after the first begin below the text, and not below what stands before it."""

    text: str
    before: Content = Content()
    style: str = ""

    def lines(self, width: int) -> list[Content]:
        room = max(MIN_TEXT, width - self.before.cell_length)
        first, *more = [Content.styled(part, self.style) for part in wrap(self.text, room)] or [Content()]
        return [self.before + first, *(Content(" " * self.before.cell_length) + line for line in more)]


class Entries(Line):
    """What does not fit into the height is cut."""

    DEFAULT_CSS = """
    Entries { height: 1fr; padding: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._entries: Sequence[Entry] = ()

    def show(self, entries: Sequence[Entry]) -> None:
        if list(entries) != list(self._entries):
            self._entries = tuple(entries)
            self.refresh()

    def text(self, width: int) -> Content:
        return Content("\n").join(line for entry in self._entries for line in entry.lines(width))
