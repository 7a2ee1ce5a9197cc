"""The lines around the table of all groups: totals by health, brokers that failed, and details of the selected group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from textual.content import Content
from textual.widgets import Static

from kgctl.model.failure import RowError
from kgctl.model.health import ATTENTION, NO_VERDICT
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.groups.columns import STYLES, facts, missing
from kgctl.tui.widgets.text.line import Line, as_fits
from kgctl.watch.figures import counted

_COLOURS = {"bad": "bold $text-error", "warn": "$text-warning", "dim": "$text-muted"}


class Summary(Line):
    """How many groups there are by health, how many are shown, and by which selection."""

    DEFAULT_CSS = """
    Summary { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._head = Content()
        self._parts: list[Content] = []

    def show(self, rows: Sequence[WatchedGroup], shown: int, selected_by: Sequence[str], marked: int) -> None:
        counts = Counter(row.health for row in rows)
        text = Content.styled(counted(len(rows), "group"), "bold")
        if selected_by:
            text += Content.styled(f", {shown:,} shown ({', '.join(selected_by)})", "$text-accent")
        if marked:
            text += Content(f", {marked:,} marked")
        self._head = text
        self._parts = [
            Content.styled(f"{counts[health]:,} {health or 'without verdict'}", _COLOURS[STYLES[health]])
            for health in ATTENTION
            if counts[health]
        ]
        self.refresh()

    def text(self, width: int) -> Content:
        return as_fits(self._head, self._parts, ": ", ", ", width)


class FailedBrokers(Static):
    """The brokers that did not answer; their groups are missing from the table. Hidden if all answered."""

    DEFAULT_CSS = """
    FailedBrokers { height: auto; max-height: 2; padding: 0 1; color: $text-warning; display: none; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def show(self, errors: Sequence[RowError]) -> None:
        self.display = bool(errors)
        if errors:
            more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
            count = counted(len(errors), "broker")
            self.update(f"{count} did not answer, groups may be missing: {cells.name(errors[0].message)}{more}")


class Detail(Line):
    """The selected group: its full name, facts that no column shows, and the reason for its health."""

    DEFAULT_CSS = """
    Detail { height: 4; border-top: solid $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._row: WatchedGroup | None = None
        self._visible: Collection[str] = ()

    def show(self, row: WatchedGroup | None, visible: Collection[str]) -> None:
        """`visible` has the keys of the columns that the table shows."""
        self._row, self._visible = row, visible
        self.refresh()

    def text(self, width: int) -> Content:
        row = self._row
        if row is None:
            return Content()
        name = Content.styled(cells.name(row.group), "bold")
        parts = [Content.styled(fact, "$text-muted") for fact in facts(row, self._visible)]
        # Cut a name that is longer than the line, so that the sentence below stays in place.
        text = as_fits(name, parts, "  ", " \u00b7 ", width).truncate(width, ellipsis=True)
        word = f"{row.health} ({row.error.name})" if row.error else row.health or NO_VERDICT
        text += Content("\n") + Content.styled(word, _COLOURS[STYLES[row.health]])
        text += Content(f": {cells.name(row.health_reason)}")
        if why := missing(row, self._visible):
            text += Content.styled(f"  {why}", "$text-muted")
        return text
