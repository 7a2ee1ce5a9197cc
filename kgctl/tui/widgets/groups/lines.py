"""What stands around the table of all groups: counts by verdict, brokers that failed, the group under the cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from kgctl.model.failure import RowError
from kgctl.model.health import ATTENTION, Health
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.frame.looks import look, verdict
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.groups.columns import facts, missing
from kgctl.tui.widgets.text.line import Line, as_fits
from kgctl.watch.figures import counted


def tally(rows: Iterable[WatchedGroup]) -> Content:
    """How many groups have each verdict, as glyphs with numbers, the worst first."""
    counts = Counter(row.health for row in rows)
    by_look: dict[tuple[str, str], int] = {}
    for health in ATTENTION:
        if counts[health] and health is not Health.UNUSED:
            found = look(health)
            key = (found.glyph, found.colour)
            by_look[key] = by_look.get(key, 0) + counts[health]
    parts = [Content.styled(f"{glyph} {count:,}", colour) for (glyph, colour), count in by_look.items()]
    return Content("  ").join(parts)


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


class Preview(Panel):
    """The group under the cursor: its full name, its verdict with the reason, and facts that no column shows."""

    DEFAULT_CSS = """
    Preview { height: 5; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id)
        self.detail = Detail()

    def compose(self) -> ComposeResult:
        yield self.detail

    def show(self, row: WatchedGroup | None, visible: Collection[str]) -> None:
        """`visible` has the keys of the columns that the table shows."""
        self.show_title("" if row is None else cells.name(row.group))
        self.detail.show(row, visible)


class Detail(Line):
    DEFAULT_CSS = """
    Detail { height: 1fr; padding: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._row: WatchedGroup | None = None
        self._visible: Collection[str] = ()

    def show(self, row: WatchedGroup | None, visible: Collection[str]) -> None:
        self._row, self._visible = row, visible
        self.refresh()

    def text(self, width: int) -> Content:
        row = self._row
        if row is None:
            return Content()
        word = verdict(row.health) + (f" ({row.error.name})" if row.error else "")
        parts = [Content.styled(fact, "$text-muted") for fact in facts(row, self._visible)]
        text = word + f": {cells.name(row.health_reason)}"
        if why := missing(row, self._visible):
            text += Content.styled(f"  {why}", "$text-muted")
        return text + "\n" + as_fits(Content(), parts, "", " \u00b7 ", width)
