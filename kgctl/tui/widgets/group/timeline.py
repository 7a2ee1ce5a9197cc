"""The rebalances of a group as a table, newest first, with a bar for the duration of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from broker.light_dataclasses import dataclass
from kgctl.model.watched import Outcome, Rebalance
from kgctl.render.table import MISSING
from kgctl.tui import cells
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows

PREPARE, COMPLETE, WHOLE, UNDER_WAY = "\u2591", "\u2588", "\u2592", "\u25b6"
BAR = "bar"
# The duration of a full bar grows in steps, so that the other bars do not shrink at every refresh.
SCALES_MS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000)


@dataclass(frozen=True, slots=True)
class Bar:
    """A rebalance as a row. `took_ms` grows while the rebalance is under way; `key` does not change when it ends."""

    key: str
    rebalance: Rebalance
    took_ms: int

    @property
    def is_under_way(self) -> bool:
        return self.rebalance.is_under_way

    @property
    def is_between_snapshots(self) -> bool:
        """Whether one snapshot shows the state before the rebalance and the next the state after: the duration is unknown."""
        return self.rebalance.is_observed and not self.is_under_way and not self.took_ms


class Timeline(Rows[Bar]):
    """The cursor follows the newest rebalance as long as it is on it."""

    def __init__(self, *, id: str | None = None) -> None:
        self.scale_ms = SCALES_MS[0]
        super().__init__(
            [
                Column("time", "UTC", lambda bar: clock_time(bar.rebalance.started_ms), 8),
                catalogue.generation(lambda bar: bar.rebalance.generation, text=_generation),
                Column("cause", "CAUSE", _cause, 21, style=_cause_style),
                Column(BAR, "DURATION", self._bar, 10, flex=1, most=60, style=_bar_style),
                Column("took", "", _took, 7, right=True),
                Column("members", "IN/OUT", _joined_and_left, 7, right=True),
                Column("moved", "MOVED", lambda bar: cells.count(bar.rebalance.partitions_moved), 5, right=True),
            ],
            key=lambda bar: bar.key,
            empty="No rebalance yet.",
            id=id,
        )

    def show_rebalances(self, rebalances: Sequence[Rebalance], now_ms: int) -> None:
        """Show rebalances, oldest first. `now_ms` is a time of the clock that `started_ms` comes from."""
        before = self.cursor_row
        was_newest = before is None or before is self.rows[0]
        bars = _bars(rebalances, now_ms)
        longest_ms = max((bar.took_ms for bar in bars), default=0)
        self.scale_ms = next((scale for scale in SCALES_MS if scale >= longest_ms), longest_ms)
        self.show(bars)
        if was_newest and bars and before is not None and bars[0].key != before.key:
            self.action_go(0)

    def go_to_time(self, at_ms: int) -> None:
        """Move the cursor to the rebalance that was under way at this time, or the last one that began before it."""
        place = next((place for place, bar in enumerate(self.rows) if bar.rebalance.started_ms <= at_ms), None)
        if place is not None:
            self.go_to(place)

    @property
    def legend(self) -> str:
        signs = f"{PREPARE} waiting for members  {COMPLETE} waiting for the assignment"
        if any(bar.rebalance.prepare_ms is None and not bar.is_under_way for bar in self.rows):
            signs += f"  {WHOLE} either"
        return f"{signs}  full bar = {cells.milliseconds(self.scale_ms)}"

    def _bar(self, bar: Bar) -> str:
        width = next((width for column, width in self._laid_out() if column.key == BAR), 0)
        return bar_text(bar, self.scale_ms, width)


def bar_text(bar: Bar, scale_ms: int, width: int) -> str:
    """The two phases to scale, with at least one cell for a phase that took any time. An arrow ends one that is under way."""
    row = bar.rebalance

    def cells_of(span_ms: int) -> int:
        return max(1, round(width * span_ms / scale_ms)) if span_ms > 0 and scale_ms else 0

    if row.prepare_ms is None:
        text = (PREPARE if bar.is_under_way else WHOLE) * cells_of(bar.took_ms)
    else:
        text = PREPARE * cells_of(row.prepare_ms) + COMPLETE * cells_of(bar.took_ms - row.prepare_ms)
    if bar.is_under_way:
        return text[: width - 1] + UNDER_WAY
    return text[:width]


def clock_time(moment_ms: int) -> str:
    return f"{datetime.fromtimestamp(moment_ms / 1000, UTC):%H:%M:%S}"


def _bars(rebalances: Sequence[Rebalance], now_ms: int) -> list[Bar]:
    starts: dict[int, int] = {}
    bars = []
    for row in rebalances:
        # Two rebalances that began in the same ms are distinguished by their order.
        number = starts[row.started_ms] = starts.get(row.started_ms, 0) + 1
        bars.append(Bar(f"{row.started_ms} {number}", row, _took_ms(row, now_ms)))
    return bars[::-1]


def _took_ms(row: Rebalance, now_ms: int) -> int:
    if row.is_under_way:
        return max(0, now_ms - row.started_ms)
    if row.ended_ms is None:
        return (row.prepare_ms or 0) + (row.complete_ms or 0)
    return max(0, row.ended_ms - row.started_ms)


def _generation(bar: Bar) -> str:
    return "\u2026" if bar.is_under_way and bar.rebalance.generation is None else cells.count(bar.rebalance.generation)


def _took(bar: Bar) -> str:
    if bar.rebalance.outcome in (Outcome.INTERRUPTED, Outcome.MEMBER_REPLACED) or bar.is_between_snapshots:
        return MISSING
    # An observed duration is only as precise as the refresh interval.
    return ("~" if bar.rebalance.is_observed else "") + cells.milliseconds(bar.took_ms)


def _joined_and_left(bar: Bar) -> str:
    row = bar.rebalance
    if bar.is_under_way and not row.is_observed:
        return MISSING
    parts = [f"+{row.joined_count}"] if row.joined_count else []
    parts += [f"-{row.left_count}"] if row.left_count else []
    return " ".join(parts) or "0"


def _cause(bar: Bar) -> str:
    row = bar.rebalance
    return row.outcome.value if row.outcome is Outcome.MEMBER_REPLACED else cells.name(row.cause)


def _cause_style(bar: Bar) -> str:
    return "warn" if bar.is_under_way else ""


def _bar_style(bar: Bar) -> str:
    return "warn" if bar.is_under_way else "dim"
