"""The partitions that a group reads: offsets, lag with its trend, rates, and the estimated time to catch up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from broker.light_dataclasses import replace
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import WatchedPartition
from kgctl.tui import cells
from kgctl.tui.widgets.charts.sparkline import sparkline
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.tui.widgets.text.plain_line import PlainLine
from kgctl.watch.trend import levels

NOTHING = "No partitions are assigned, and no offsets are committed."
# The largest offset that is shown with all its digits: 13 cells.
_LONGEST = 9_999_999_999
_TREND = "trend"


class OffsetsPane(Vertical):
    """Totals, a table of partitions, and below it the selected partition in words with the reason for values that are `-`."""

    DEFAULT_CSS = """
    OffsetsPane { height: 1fr; }
    OffsetsPane > .offsets--more, OffsetsPane > .offsets--why { color: $text-muted; }
    """
    HELP_TITLE: ClassVar[str] = "In the offsets"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "next_sort", "Sort"),
        Binding("S", "reverse_sort", "Reverse", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._partitions: tuple[WatchedPartition, ...] = ()
        self._is_ready = False
        self._columns = self._make_columns()
        self._total = PlainLine()
        self._more = PlainLine(classes="offsets--more")
        self._why = PlainLine(classes="offsets--why")
        self._rows: Rows[WatchedPartition] = Rows(self._columns, key=_key, empty=NOTHING)

    def compose(self) -> ComposeResult:
        yield self._total
        yield self._rows
        yield self._more
        yield self._why

    def on_mount(self) -> None:
        self._rows.sort_by("partition")
        self._is_ready = True
        self._fill()

    # ---- used by screens

    def show(self, partitions: Sequence[WatchedPartition], empty: str = NOTHING) -> None:
        """Show these partitions, in any order. `empty` is shown if there are none."""
        self._partitions = tuple(sorted(partitions, key=_place))
        self._rows.empty = empty
        if self._is_ready:
            self._fill()

    @property
    def cursor_row(self) -> WatchedPartition | None:
        return self._rows.cursor_row

    @property
    def why(self) -> str:
        """Why values of the selected partition are missing, in sentences; "" if none is."""
        row = self.cursor_row
        return "" if row is None else why(row)

    def focus(self, scroll_visible: bool = True) -> OffsetsPane:
        self._rows.focus(scroll_visible)
        return self

    # ---- keys

    def action_next_sort(self) -> None:
        self._rows.sort_next()

    def action_reverse_sort(self) -> None:
        self._rows.reverse()

    def on_rows_moved(self) -> None:
        self._show_partition()

    # ---- rendering

    def _fill(self) -> None:
        self._rows.show(self._partitions)
        self._total.show(total_line(self._partitions))
        self._show_partition()

    def _show_partition(self) -> None:
        row = self.cursor_row
        self._more.show("" if row is None else _in_words(row))
        self._why.show(self.why)

    def _trend(self, row: WatchedPartition) -> str:
        width = self._rows.width_of(_TREND)
        return sparkline(levels(row.lags[-width:] if width else (), row.rate_in), width)

    def _make_columns(self) -> list[Column[WatchedPartition]]:
        return [
            catalogue.topic(lambda row: row.topic),
            catalogue.partition(lambda row: row.partition, order=_place),
            catalogue.number("committed", "COMMITTED", lambda row: row.committed, _offset, 13),
            catalogue.number("end", "END", lambda row: row.log_end, _offset, 13),
            replace(catalogue.number("lag", "LAG", lambda row: row.lag, cells.count, 11), text=_lag, style=_lag_style),
            Column(_TREND, "TREND", self._trend, 8, flex=1, most=30, right=True, priority=1, style=lambda _: "dim"),
            catalogue.rate("in", "IN/s", lambda row: row.rate_in, priority=3),
            catalogue.rate("out", "OUT/s", lambda row: row.rate_out, priority=3),
            catalogue.number("eta", "ETA", lambda row: row.eta_s, _eta, 7, priority=2),
            Column(
                "member",
                "MEMBER",
                lambda row: cells.name(row.client_id),
                11,
                flex=1,
                most=40,
                style=lambda row: "" if row.client_id else "dim",
                order=lambda row: row.client_id,
                priority=4,
            ),
        ]


def total_line(partitions: Sequence[WatchedPartition]) -> str:
    """Totals of lag and rates, and the first partition with an error; "" without partitions.

    The total lag counts the partitions with a known lag and says how many these are.
    """
    if not partitions:
        return ""
    known = [row.lag for row in partitions if row.lag is not None]
    lag = cells.count(sum(max(one, 0) for one in known) if known else None)
    failed = [row for row in partitions if row.error is not None]
    total = "1 partition" if len(partitions) == 1 else f"{len(partitions):,} partitions"
    parts = [
        total + (f", {len(failed):,} with an error" if failed else ""),
        f"lag {lag}" + (f" ({len(known):,} of {len(partitions):,} known)" if 0 < len(known) < len(partitions) else ""),
        f"in {cells.rate(_sum(row.rate_in for row in partitions))}",
        f"out {cells.rate(_sum(row.rate_out for row in partitions))}",
    ]
    if failed:
        parts.append(f"{_named(failed[0])}: {_error(failed[0])}")
    return " \u00b7 ".join(parts)


def why(row: WatchedPartition) -> str:
    """Why some cells of a row are `-`, in sentences, the error first; "" if none is."""
    parts = []
    if row.error is not None:
        parts.append(_error(row)[:1].upper() + _error(row)[1:] + ".")
    if row.committed is None and row.error is None:
        parts.append("No offset is committed, so there is no lag.")
    if row.log_end is None and row.error is None:
        parts.append("The log end offset is not known.")
    if row.consumer_id is None:
        parts.append("No member owns this partition.")
    if row.lag is not None and (row.rate_in is None or row.rate_out is None):
        parts.append("Rates need two refreshes.")
    elif row.lag is not None and row.lag > 0 and row.eta_s is None:
        parts.append("No ETA: the lag does not shrink.")
    if row.lag is not None and row.lag < 0:
        parts.append("The committed offset is beyond the log end: the topic was truncated or recreated.")
    return " ".join(parts)


def _in_words(row: WatchedPartition) -> str:
    """Values that a narrow terminal has no columns for."""
    parts = [
        _named(row),
        f"lag {cells.count(row.lag)}",
        f"in {cells.rate(row.rate_in)}",
        f"out {cells.rate(row.rate_out)}",
        f"ETA {_eta(row.eta_s)}",
    ]
    if row.consumer_id is not None:
        parts.append(f"member {cells.name(row.client_id or row.consumer_id)}")
    return " \u00b7 ".join(parts)


def _key(row: WatchedPartition) -> str:
    return f"{row.topic}\0{row.partition}"


def _place(row: WatchedPartition) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)


def _named(row: WatchedPartition) -> str:
    return f"{cells.name(row.topic)} {row.partition}"


def _error(row: WatchedPartition) -> str:
    assert row.error is not None
    return cells.name(row.error.message or row.error.name).rstrip(".")


def _offset(offset: int | None) -> str:
    """A number too wide for its column gets a unit, because cutting its last digits would change its value."""
    return cells.count(offset) if offset is None or abs(offset) <= _LONGEST else cells.short(offset)


def _lag(row: WatchedPartition) -> str:
    if row.lag is None and row.error is not None:
        return "error"
    return cells.count(row.lag) if row.lag is None or abs(row.lag) < 10**9 else cells.short(row.lag)


def _lag_style(row: WatchedPartition) -> str:
    if row.error is not None:
        return "bad"
    return "strong" if row.lag else "dim"


def _eta(seconds: float | None) -> str:
    return "0 s" if seconds == 0 else cells.duration(seconds)


def _sum(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None
