"""The lines around the table of all groups: how many there are of which kind, and all about the one of the cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from kgctl.model.failure import RowError
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.group_columns import STYLES, WORST_FIRST, facts, missing

_COLOURS = {"bad": "bold $text-error", "warn": "$text-warning", "dim": "$text-muted"}


class Line(Widget):
    """A text that depends on the width it has when it is drawn."""

    DEFAULT_CSS = """
    Line { padding: 0 1; }
    """

    def text(self, width: int) -> Content:
        raise NotImplementedError

    def render(self) -> Content:
        return self.text(max(1, self.content_size.width))


class Summary(Line):
    """How many groups, by verdict; how many of them are seen, and by which choice."""

    DEFAULT_CSS = """
    Summary { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._head = Content()
        self._parts: list[Content] = []

    def tell(self, rows: Sequence[WatchedGroup], shown: int, chosen_by: Sequence[str], marked: int) -> None:
        counts = Counter(row.verdict for row in rows)
        text = Content.styled(_counted(len(rows), "group"), "bold")
        if chosen_by:
            text += Content.styled(f", {shown:,} shown ({', '.join(chosen_by)})", "$text-accent")
        if marked:
            text += Content(f", {marked:,} marked")
        self._head = text
        self._parts = [
            Content.styled(f"{counts[verdict]:,} {verdict}", _COLOURS[STYLES[verdict]])
            for verdict in WORST_FIRST
            if counts[verdict]
        ]
        self.refresh()

    def text(self, width: int) -> Content:
        return as_fits(self._head, self._parts, ": ", ", ", width)


class Unheard(Static):
    """The brokers that did not answer: their groups are missing from the table. Away if all did."""

    DEFAULT_CSS = """
    Unheard { height: auto; max-height: 2; padding: 0 1; color: $text-warning; display: none; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def tell(self, errors: Sequence[RowError]) -> None:
        self.display = bool(errors)
        if errors:
            more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
            count = _counted(len(errors), "broker")
            self.update(f"{count} did not answer, groups may be missing: {cells.name(errors[0].message)}{more}")


class Detail(Line):
    """The group of the cursor: its whole name, what there was no room for, and its verdict as a sentence."""

    DEFAULT_CSS = """
    Detail { height: 4; border-top: solid $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._row: WatchedGroup | None = None
        self._seen: Collection[str] = ()

    def tell(self, row: WatchedGroup | None, seen: Collection[str]) -> None:
        self._row, self._seen = row, seen
        self.refresh()

    def text(self, width: int) -> Content:
        row = self._row
        if row is None:
            return Content()
        name = Content.styled(cells.name(row.group), "bold")
        told = [Content.styled(fact, "$text-muted") for fact in facts(row, self._seen)]
        # A name longer than the line is cut, so that the sentence below stays where it is.
        text = as_fits(name, told, "  ", " \u00b7 ", width).truncate(width, ellipsis=True)
        word = f"{row.verdict} {row.error.name}" if row.error else row.verdict.value
        text += Content("\n") + Content.styled(word, _COLOURS[STYLES[row.verdict]])
        text += Content(f": {cells.name(row.verdict_reason)}")
        if why := missing(row, self._seen):
            text += Content.styled(f"  {why}", "$text-muted")
        return text


def as_fits(text: Content, parts: Sequence[Content], first: str, between: str, width: int) -> Content:
    """The text and as many of the parts, in their order, as a line has room for; no part is cut."""
    for place, part in enumerate(parts):
        longer = text + Content(between if place else first) + part
        if longer.cell_length > width:
            break
        text = longer
    return text


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
