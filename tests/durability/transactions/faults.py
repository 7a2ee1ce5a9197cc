"""Planted faults of transactions, which the kill cycles must catch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.protocol.messages.end_txn import EndTxnRequest
from broker.server.exchange import Exchange
from broker.server.flush import Flusher
from broker.server.group_runner import GroupRunner
from broker.storage import TRANSACTIONS_TOPIC, Log
from broker.storage.segments.aborted_transactions import AbortedTransactions
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.visible import Visible

LATE_S = 0.05


def commit_half() -> None:
    """Abort every transaction in the first partition of a topic."""
    append = SegmentPartition.append_marker

    def append_half(self: Any, marker: Any, *, wall_ms: int) -> Any:
        return append(self, marker._replace(is_commit=marker.is_commit and self.index > 0), wall_ms=wall_ms)

    SegmentPartition.append_marker = append_half  # type: ignore[method-assign]


def show_open() -> None:
    """Show the records of open transactions to readers of committed records."""

    def stabilize(self: Any, *_: object) -> None:
        self.last_stable_offset = self.high_watermark

    Visible.stabilize = stabilize  # type: ignore[method-assign]


def show_aborted() -> None:
    """Name no aborted transactions in Fetch."""
    SegmentPartition.aborted_transactions = lambda self, start, end: []  # type: ignore[method-assign]


def forget_aborted() -> None:
    """Lose the aborted transactions in a restart."""
    load = AbortedTransactions.__init__

    def load_nothing(self: Any, store: Any, partition_id: int) -> None:
        store.execute("DELETE FROM aborted_transactions WHERE partition_id = ?", (partition_id,))
        load(self, store, partition_id)

    AbortedTransactions.__init__ = load_nothing  # type: ignore[method-assign]


def answer_ends_early() -> None:
    """Answer EndTxn immediately and flush it a little later."""
    release, schedule = Flusher.release, Flusher.schedule

    def release_early(self: Any, exchange: Exchange) -> None:
        if exchange.api_key == EndTxnRequest.API_KEY:
            exchange.released = True
            exchange.connection.released()
            self._scheduled = True
            self._loop.call_later(LATE_S, self.flush)
        else:
            release(self, exchange)

    def schedule_later(self: Any) -> None:
        if not self._scheduled:
            schedule(self)

    Flusher.release = release_early  # type: ignore[method-assign]
    Flusher.schedule = schedule_later  # type: ignore[method-assign]


def commit_aborted_offsets() -> None:
    """Commit the offsets of aborted transactions too."""
    _end_offsets(is_commit=True)


def drop_offsets() -> None:
    """Drop the offsets of committed transactions too."""
    _end_offsets(is_commit=False)


def _end_offsets(*, is_commit: bool) -> None:
    end = GroupRunner.end_transaction

    def end_all_alike(self: Any, *arguments: Any, **named: Any) -> bool:
        return end(self, *arguments, **{**named, "is_commit": is_commit})

    GroupRunner.end_transaction = end_all_alike  # type: ignore[method-assign]


def forget_transactions() -> None:
    """Lose the state of transactional ids in a restart."""
    append = Log.append_rows
    Log.append_rows = lambda self, topic, rows: append(  # type: ignore[method-assign]
        self, topic, [] if topic == TRANSACTIONS_TOPIC else rows
    )


FAULTS: dict[str, Callable[[], None]] = {
    "half of a transaction is committed": commit_half,
    "open transactions are shown": show_open,
    "aborted transactions are shown": show_aborted,
    "aborted transactions are forgotten": forget_aborted,
    "ends are answered before they are durable": answer_ends_early,
    "offsets of aborted transactions are committed": commit_aborted_offsets,
    "offsets of transactions are dropped": drop_offsets,
    "transactional ids are forgotten": forget_transactions,
}
