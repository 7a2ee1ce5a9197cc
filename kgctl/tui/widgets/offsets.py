"""How far a group has read each partition: offsets, lag and how it goes, rates, and when it will have caught up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import WatchedPartition
from kgctl.tui import cells
from kgctl.tui.widgets.columns import Column
from kgctl.tui.widgets.plain_line import PlainLine
from kgctl.tui.widgets.rows import Rows
from kgctl.tui.widgets.sparkline import sparkline

NOTHING = "Nothing is assigned, and nothing was committed."
# The longest offset that is shown digit by digit: 13 cells.
_LONGEST = 9_999_999_999
_TREND = "trend"
N = TypeVar("N", int, float)


class OffsetsPane(Vertical):
    """A table of WatchedPartition under their sum; below it the row of the cursor in words.

    OffsetsPane(id=...), then `show(partitions)` after each look. It takes the height that is left and can be shown before
    the first look. `cursor_row` is the partition to act on (None without rows), `why` says what its `-` mean, and changes
    with the cursor. Its Rows post Rows.Moved and Rows.Chosen as everywhere; `focus()` goes to them.
    """

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
        self._columns = self._made_columns()
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

    # ---- what a screen uses

    def show(self, partitions: Sequence[WatchedPartition], empty: str = NOTHING) -> None:
        """Show these partitions, in any order. `empty` is the sentence if there are none."""
        self._partitions = tuple(sorted(partitions, key=_place))
        self._rows.empty = empty
        if self._is_ready:
            self._fill()

    @property
    def cursor_row(self) -> WatchedPartition | None:
        return self._rows.cursor_row

    @property
    def why(self) -> str:
        """What the row of the cursor does not tell and why, in sentences; "" if it tells all."""
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
        self._tell()

    # ---- drawing

    def _fill(self) -> None:
        self._rows.show(self._partitions)
        self._total.tell(total_line(self._partitions))
        self._tell()

    def _tell(self) -> None:
        row = self.cursor_row
        self._more.tell("" if row is None else _in_words(row))
        self._why.tell(self.why)

    def _trend(self, row: WatchedPartition) -> str:
        return sparkline(row.lags, self._rows.width_of(_TREND))

    def _made_columns(self) -> list[Column[WatchedPartition]]:
        return [
            Column("topic", "TOPIC", lambda row: cells.name(row.topic), 10, flex=3, most=40),
            Column("partition", "PARTITION", lambda row: str(row.partition), 10, right=True, order=_place),
            _number("committed", "COMMITTED", lambda row: row.committed, _offset, 13),
            _number("end", "END", lambda row: row.log_end, _offset, 13),
            replace(_number("lag", "LAG", lambda row: row.lag, cells.count, 11), text=_lag, style=_lag_style),
            Column(_TREND, "TREND", self._trend, 8, flex=1, most=30, right=True, priority=1, style=lambda _: "dim"),
            _number("in", "IN", lambda row: row.rate_in, cells.rate, 8, priority=3),
            _number("out", "OUT", lambda row: row.rate_out, cells.rate, 8, priority=3),
            _number("eta", "ETA", lambda row: row.eta_s, _eta, 7, priority=2),
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
    """Partitions, lag and rates together, and the first partition that could not be asked; "" without partitions.

    A sum of what is known leaves out what is not, and says so.
    """
    if not partitions:
        return ""
    known = [row.lag for row in partitions if row.lag is not None]
    lag = cells.count(sum(max(one, 0) for one in known) if known else None)
    failed = [row for row in partitions if row.error is not None]
    total = "1 partition" if len(partitions) == 1 else f"{len(partitions):,} partitions"
    said = [
        total + (f", {len(failed):,} with an error" if failed else ""),
        f"lag {lag}" + (f" of {len(known):,} known" if 0 < len(known) < len(partitions) else ""),
        f"in {cells.rate(_sum(row.rate_in for row in partitions))}",
        f"out {cells.rate(_sum(row.rate_out for row in partitions))}",
    ]
    if failed:
        said.append(f"{_named(failed[0])}: {_error(failed[0])}")
    return " \u00b7 ".join(said)


def why(row: WatchedPartition) -> str:
    """Why some cells of a row are `-`, in sentences; its error first. "" if none is."""
    said = []
    if row.error is not None:
        said.append(_error(row)[:1].upper() + _error(row)[1:] + ".")
    if row.committed is None and row.error is None:
        said.append("Nothing is committed: there is no lag to tell.")
    if row.log_end is None and row.error is None:
        said.append("Its log end is not known.")
    if row.consumer_id is None:
        said.append("No member has it.")
    if row.lag is not None and (row.rate_in is None or row.rate_out is None):
        said.append("Rates need a second look.")
    elif row.lag is not None and row.lag > 0 and row.eta_s is None:
        said.append("No ETA: the lag does not shrink.")
    if row.lag is not None and row.lag < 0:
        said.append("It is committed beyond the log end: the topic was cut or made anew.")
    return " ".join(said)


def _in_words(row: WatchedPartition) -> str:
    """What a narrow terminal has no columns for."""
    said = [
        _named(row),
        f"lag {cells.count(row.lag)}",
        f"in {cells.rate(row.rate_in)}",
        f"out {cells.rate(row.rate_out)}",
        f"ETA {_eta(row.eta_s)}",
    ]
    if row.consumer_id is not None:
        said.append(f"member {cells.name(row.client_id or row.consumer_id)}")
    return " \u00b7 ".join(said)


def _number(
    key: str,
    title: str,
    of: Callable[[WatchedPartition], N | None],
    text: Callable[[N | None], str],
    width: int,
    priority: int = 0,
) -> Column[WatchedPartition]:
    """A column of numbers: the greatest first, what is not known last and muted."""
    return Column(
        key,
        title,
        lambda row: text(of(row)),
        width,
        right=True,
        style=lambda row: "dim" if of(row) is None else "",
        order=of,
        falling=True,
        priority=priority,
    )


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
    """A number that a column would cut is shortened instead: one without its last digits says something else."""
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
