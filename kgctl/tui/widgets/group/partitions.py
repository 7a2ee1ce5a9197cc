"""The partitions that a group reads: lag with its trend, rates, owners, offsets, and the estimated time to catch up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual import events
from textual.app import ComposeResult

from broker.light_dataclasses import replace
from kgctl.model.groups import PartitionLag
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import WatchedPartition
from kgctl.tui import cells
from kgctl.tui.widgets.charts.area import area, fitted
from kgctl.tui.widgets.frame.filter import Field
from kgctl.tui.widgets.frame.table_panel import GONE, TablePanel
from kgctl.tui.widgets.group.names import name_of
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.tui.widgets.text.line import Parts
from kgctl.watch.figures import counted
from kgctl.watch.rates import LEAST_SPAN_S
from kgctl.watch.trend import levels

NOTHING = "No partitions are assigned, and no offsets are committed."
# The widths of the table from which there is room for more columns.
WIDE, WIDER = 70, 86


class PartitionsPanel(TablePanel[WatchedPartition]):
    """Below the table: the selected partition in words, with the reason for values that are `-`."""

    def __init__(self) -> None:
        super().__init__(
            "Partitions",
            self._columns(),
            key=lambda row: f"{row.topic}\0{row.partition}",
            name=lambda row: f"{row.topic}-{row.partition}",
            fields=(
                Field("topic", lambda row: (row.topic,)),
                Field("member", lambda row: (self._owner(row), row.consumer_id)),
                Field("lag", number=lambda row: row.lag),
            ),
            empty=NOTHING,
            no_match="No partition matches. Press Esc to show all partitions.",
            number=2,
            least=(38, 4),
            id="partitions",
        )
        self._names: Mapping[str, str] = {}
        self._is_owned = True
        self._before: Mapping[TopicPartition, PartitionLag] | None = None
        self._why = Parts(" ", "-detail")

    def compose(self) -> ComposeResult:
        yield self.table
        yield self._why
        yield self.bar

    def on_mount(self) -> None:
        self.table.sort_by("lag")

    @property
    def cursor_partition(self) -> WatchedPartition | None:
        return self.table.cursor_row

    def show_partitions(
        self,
        partitions: Sequence[WatchedPartition],
        names: Mapping[str, str],
        *,
        is_owned: bool,
        before: Mapping[TopicPartition, PartitionLag] | None = None,
    ) -> None:
        """`names` has the names of members by member id; `is_owned`: the group is not between two assignments.

        `before`: the partitions at the moment to compare with, if there is one.
        """
        self._names, self._is_owned, self._before = names, is_owned, before
        failed = sum(row.error is not None for row in partitions)
        self.show(partitions, parts=[f"{failed:,} with an error"] if failed else [], gone=lambda _: GONE)
        self._show_why()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self._show_why()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        # Which columns there are follows from the layout of the table.
        self.call_after_refresh(self._show_why)

    def _show_why(self) -> None:
        row = self.cursor_partition
        self._why.show([] if row is None else in_words(row, self.table.visible_columns, is_owned=self._is_owned))

    def _owner(self, row: WatchedPartition) -> str:
        if row.readers is not None:
            return counted(row.readers, "member")
        return cells.name(None) if row.consumer_id is None else name_of(row.consumer_id, self._names)

    def _has_before(self) -> bool:
        return self._before is not None

    def _lag_since(self, row: WatchedPartition) -> int | None:
        then = (self._before or {}).get(_place(row))
        return None if then is None or then.lag is None or row.lag is None else row.lag - then.lag

    def _read_since(self, row: WatchedPartition) -> int | None:
        then = (self._before or {}).get(_place(row))
        if then is None or then.current_offset is None or row.committed is None:
            return None
        return row.committed - then.current_offset

    def _columns(self) -> list[Column[WatchedPartition]]:
        return [
            replace(catalogue.topic(lambda row: row.topic), width=9, order=_place),
            Column("partition", "P", lambda row: str(row.partition), 4, right=True, order=_place),
            replace(catalogue.number("committed", "COMMITTED", lambda row: row.committed, cells.count, 11), drawn=_committed, from_room=WIDER),
            replace(catalogue.number("end", "END", lambda row: row.log_end, cells.count, 11), drawn=_end, from_room=WIDER),
            replace(catalogue.number("lag", "LAG", lambda row: row.lag, cells.count, 8), flex=1, most=12, drawn=_lag, style=_lag_style),
            catalogue.change("lag-since", "LAG +/-", self._lag_since, cells.count, self._has_before),
            catalogue.change("read-since", "READ +/-", self._read_since, cells.count, self._has_before),
            Column("trend", "TREND", lambda _: "", 6, flex=2, most=30, drawn=_trend, priority=1),
            catalogue.rate("in", "IN/s", lambda row: row.rate_in, priority=3),
            replace(catalogue.rate("out", "OUT/s", lambda row: row.rate_out), from_room=WIDE),
            replace(catalogue.number("eta", "ETA", lambda row: row.eta_s, cells.age, 5), from_room=WIDE),
            Column("member", "MEMBER", self._owner, 8, flex=4, most=40, priority=2,
                   style=lambda row: "" if row.consumer_id else "dim", order=self._owner),
        ]  # fmt: skip


def in_words(row: WatchedPartition, visible: set[str], *, is_owned: bool = True) -> list[str]:
    """Why cells of a row are `-`, the error first, and what no visible column shows, in sentences."""
    parts = why(row, is_owned=is_owned)
    if "committed" not in visible and row.committed is not None:
        what = "Committed" if row.readers is None else "Start offset"
        parts.append(f"{what} {cells.count(row.committed)} of {cells.count(row.log_end)}.")
    if "out" not in visible and row.rate_out is not None:
        parts.append(f"Out {cells.rate(row.rate_out)}.")
    if "eta" not in visible and row.eta_s:
        parts.append(f"Caught up in {cells.duration(row.eta_s)}.")
    return parts


def why(row: WatchedPartition, *, is_owned: bool = True) -> list[str]:
    parts = []
    if row.error is not None:
        text = cells.name(row.error.message or row.error.name).rstrip(".")
        parts.append(f"{text[:1].upper()}{text[1:]}.")
    if row.committed is None and row.error is None:
        none = "No offset is committed" if row.readers is None else "There is no start offset before the first fetch"
        parts.append(f"{none}, so there is no lag.")
    if row.log_end is None and row.error is None:
        parts.append("The log end offset is not known.")
    if row.readers == 0:
        parts.append("No member reads this partition.")
    elif row.consumer_id is None and row.readers is None and is_owned:
        parts.append("No member owns this partition.")
    if row.lag is not None and (row.rate_in is None or row.rate_out is None):
        parts.append(f"Rates need {LEAST_SPAN_S:g} s.")
    elif row.lag is not None and row.lag > 0 and row.eta_s is None:
        parts.append("No ETA: the lag does not shrink.")
    if row.lag is not None and row.lag < 0:
        what = "committed" if row.readers is None else "start"
        parts.append(f"The {what} offset is beyond the log end: the topic was truncated or recreated.")
    return parts


def _place(row: WatchedPartition) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)


def _committed(row: WatchedPartition, width: int) -> str:
    return cells.whole(row.committed, width)


def _end(row: WatchedPartition, width: int) -> str:
    return cells.whole(row.log_end, width)


def _lag(row: WatchedPartition, width: int) -> str:
    return "error" if row.lag is None and row.error is not None else cells.whole(row.lag, width)


def _lag_style(row: WatchedPartition) -> str:
    if row.error is not None:
        return "bad"
    return "strong" if row.lag else "dim"


def _trend(row: WatchedPartition, width: int) -> str:
    return area(levels(fitted(row.lags, width), row.rate_in), 1)[0]
