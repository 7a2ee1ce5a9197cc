"""What stands around the table of all groups: counts by verdict, and brokers that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from textual.content import Content
from textual.widgets import Static

from kgctl.model.failure import RowError
from kgctl.model.health import ATTENTION, Health
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.frame.looks import look
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
