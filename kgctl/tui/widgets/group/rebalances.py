"""The rebalances of a group, newest first: who caused each, how long both phases took, what it changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from textual.app import ComposeResult

from kgctl.model.watched import Outcome, Rebalance
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.filter import Field
from kgctl.tui.widgets.frame.table_panel import TablePanel
from kgctl.tui.widgets.group.bars import (
    COMPLETE,
    PREPARE,
    WHOLE,
    Bar,
    bar_text,
    bars,
    clock_time,
    joined_and_left,
    scale_ms,
    took,
)
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.text.plain_line import PlainLine

WITHOUT_END = (Outcome.SUPERSEDED, Outcome.INTERRUPTED)
SOME_MORE = re.compile(r" and ([\d,]+) more")


class RebalancesPanel(TablePanel[Bar]):
    """The cursor follows the newest rebalance as long as it is on it. Below the table: where the rows are known from."""

    DEFAULT_CSS = """
    RebalancesPanel > .rebalances--note { height: auto; max-height: 4; color: $text-muted; padding: 0 1; text-wrap: wrap; }
    """

    def __init__(self) -> None:
        self._scale_ms = scale_ms([])
        super().__init__(
            "Rebalances",
            self._columns(),
            key=lambda bar: bar.key,
            name=lambda bar: bar.cause,
            fields=(
                Field("cause", lambda bar: (bar.rebalance.cause, bar.cause)),
                Field("member", lambda bar: (*bar.rebalance.joined, *bar.rebalance.left)),
                Field("moved", number=lambda bar: bar.rebalance.partitions_moved),
                Field("took", number=lambda bar: bar.took_ms / 1000),
            ),
            empty="No rebalance yet.",
            no_match="No rebalance matches. Press Esc to show all rebalances.",
            number=3,
            least=(50, 4),
            id="rebalances",
        )
        self._source = PlainLine(classes="rebalances--note")
        self._shown: tuple[Bar, ...] = ()

    def compose(self) -> ComposeResult:
        yield self.table
        yield self._source
        yield self.bar

    def show_rebalances(
        self,
        rebalances: Sequence[Rebalance],
        now_ms: int,
        names: Mapping[str, str],
        notes: Sequence[str],
        *,
        is_reconciliation: bool = False,
    ) -> None:
        """Show rebalances, oldest first. `names` are of current members; `notes` are sentences on where the rows are known from."""
        found = bars(rebalances, now_ms, names, is_reconciliation=is_reconciliation)
        before, rows = self.table.cursor_row, tuple(found)
        was_newest = before is None or before is self.table.rows[0]
        self._scale_ms = scale_ms(rows)
        self.table.empty = self._empty = "No rebalance observed yet." if notes else "No rebalance yet."
        if rows != self._shown or not rows:
            self._shown = rows
            self.show(rows, parts=[self._legend(rows), f"bar {cells.age(self._scale_ms / 1000)}"] if rows else [])
        is_small = self.screen.has_class("-low") and not self.is_zoomed
        self._source.update(" ".join(notes[:1] if is_small else notes))
        self._source.display = bool(notes)
        shown = self.table.rows
        if was_newest and shown and before is not None and shown[0].key != before.key:
            self.table.action_go(0)

    def go_to_time(self, at_ms: int) -> None:
        """Move the cursor to the rebalance that was under way at this time, or the last one that began before it."""
        place = next((place for place, bar in enumerate(self.table.rows) if bar.rebalance.started_ms <= at_ms), None)
        if place is not None:
            self.table.go_to(place)

    @staticmethod
    def _legend(rows: Sequence[Bar]) -> str:
        first, second = ("assign", "reconcile") if rows[0].is_reconciliation else ("join", "assign")
        text = f"{PREPARE} {first} {COMPLETE} {second}"
        is_whole = any(bar.rebalance.prepare_ms is None and not bar.is_under_way and bar.took_ms for bar in rows)
        return f"{text} {WHOLE} either" if is_whole else text

    def _columns(self) -> list[Column[Bar]]:
        return [
            Column("time", "UTC", lambda bar: clock_time(bar.rebalance.started_ms), 8),
            Column("generation", "GEN", _generation, 4, right=True, order=lambda bar: bar.rebalance.generation),
            Column("cause", "CAUSE", lambda bar: bar.cause, 18, flex=6, most=60, style=_style, drawn=_cause),
            Column("bar", "DURATION", self._bar, 8, flex=1, most=24, style=_bar_style, drawn=self._bar_in, priority=1),
            Column("took", "", took, 6, right=True, order=lambda bar: bar.took_ms, falling=True),
            Column("members", "+/-", joined_and_left, 5, right=True),
            Column("moved", "MOVED", _moved, 5, right=True, order=lambda bar: bar.rebalance.partitions_moved, falling=True),
        ]  # fmt: skip

    def _bar(self, bar: Bar) -> str:
        return self._bar_in(bar, 8)

    def _bar_in(self, bar: Bar, width: int) -> str:
        return bar_text(bar, self._scale_ms, width)


def _generation(bar: Bar) -> str:
    number = bar.rebalance.generation
    return glyphs.ELLIPSIS if bar.is_under_way and number is None else cells.whole(number, 4)


def _cause(bar: Bar, width: int) -> str:
    """The longest form that fits: who and what, fewer names, how it ended if that is the news."""
    forms = [bar.cause, SOME_MORE.sub(r" +\1", bar.cause)]
    if bar.rebalance.outcome in WITHOUT_END:
        forms.append(bar.rebalance.outcome.value)
    return next((one for one in forms if cell_len(one) <= width), forms[-1])


def _moved(bar: Bar) -> str:
    return cells.whole(bar.rebalance.partitions_moved, 5)


def _style(bar: Bar) -> str:
    if bar.rebalance.outcome in WITHOUT_END:
        return "dim"
    return "warn" if bar.is_under_way else ""


def _bar_style(bar: Bar) -> str:
    return "warn" if bar.is_under_way else "dim"
