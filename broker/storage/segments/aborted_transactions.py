"""The aborted transactions of one partition, so that readers of committed records can skip theirs.

They are rows of the store. Each is written by the commit of its marker, so memory holds only those of the open flush.
Rows are ordered by a bound of their length, then by their markers: what overlaps some offsets ends in them, or less than
its bound behind them.
"""

from __future__ import annotations

from operator import attrgetter

from broker.light_named_tuples import NamedTuple
from broker.storage.partition_log import AbortedTransaction
from broker.storage.store.database import Store
from broker.storage.store.values import Row, as_int

# schema_8.sql has the same.
LENGTH_BOUNDS = (64, 4096, 1 << 18, 1 << 24, 1 << 62)

_ANY_BOUND = f"length_bound IN ({', '.join(map(str, LENGTH_BOUNDS))})"


class AbortedRange(NamedTuple):
    """The records of the producer from `first_offset` on, up to the marker at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int


_marker_of = attrgetter("last_offset")


class AbortedTransactions:
    def __init__(self, store: Store, partition_id: int) -> None:
        self._store = store
        self._unsaved: list[tuple[int, int, int, int]] = []
        self._newest: dict[int, int] = {}  # by length bound: the last offset of the last one
        for bound in LENGTH_BOUNDS:
            ((newest,),) = store.query(
                "SELECT max(last_offset) FROM aborted_transactions WHERE partition_id = ? AND length_bound = ?",
                (partition_id, bound),
            )
            if newest is not None:
                self._newest[bound] = as_int(newest)

    def note(self, producer_id: int, first_offset: int, last_offset: int) -> None:
        bound = next(bound for bound in LENGTH_BOUNDS if last_offset - first_offset < bound)
        self._unsaved.append((bound, last_offset, producer_id, first_offset))
        self._newest[bound] = last_offset

    def save(self, partition_id: int) -> None:
        if self._unsaved:
            self._store.execute_many(
                "INSERT OR REPLACE INTO aborted_transactions VALUES (?, ?, ?, ?, ?)",
                [(partition_id, *row) for row in self._unsaved],
            )
            self._unsaved.clear()

    def between(self, partition_id: int, start: int, end: int) -> list[AbortedTransaction]:
        """Those with a saved marker that have offsets in start <= offset < end, in the order of their markers."""
        return [
            AbortedTransaction(row.producer_id, row.first_offset) for row in self.overlapping(partition_id, start, end)
        ]

    def overlapping(self, partition_id: int, start: int, end: int) -> list[AbortedRange]:
        rows: list[Row] = []
        for bound, newest in self._newest.items():
            if start <= newest:
                rows += self._store.query(
                    "SELECT producer_id, first_offset, last_offset FROM aborted_transactions WHERE partition_id = ?"
                    " AND length_bound = ? AND last_offset >= ? AND last_offset < ? AND first_offset < ?",
                    (partition_id, bound, start, end + bound, end),
                )
        found = [AbortedRange(as_int(row[0]), as_int(row[1]), as_int(row[2])) for row in rows]
        return sorted(found, key=_marker_of)

    def forget(self, partition_id: int, last_offset: int) -> None:
        """Compaction removed all records of this transaction."""
        self._store.execute(
            f"DELETE FROM aborted_transactions WHERE partition_id = ? AND {_ANY_BOUND} AND last_offset = ?",
            (partition_id, last_offset),
        )

    def drop_before(self, partition_id: int, log_start: int) -> None:
        """Forget transactions that ended before the log start."""
        if self._newest:
            self._store.execute(
                f"DELETE FROM aborted_transactions WHERE partition_id = ? AND {_ANY_BOUND} AND last_offset < ?",
                (partition_id, log_start),
            )
