"""The aborted transactions of one partition, so that readers of committed records can skip theirs.

They are rows of the store. Each is written by the commit of its marker, so memory holds only those of the open flush.
"""

from __future__ import annotations

from typing import NamedTuple

from broker.storage.partition_log import AbortedTransaction
from broker.storage.store.database import Store
from broker.storage.store.values import as_int


class AbortedRange(NamedTuple):
    """The records of the producer from `first_offset` on, up to the marker at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int


class AbortedTransactions:
    def __init__(self, store: Store, partition_id: int) -> None:
        self._store = store
        self._unsaved: list[tuple[int, int, int, int]] = []
        found = store.query("SELECT max(last_offset) FROM aborted_transactions WHERE partition_id = ?", (partition_id,))
        self._newest = as_int(-1 if found[0][0] is None else found[0][0])  # the last offset of the last one

    def note(self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> None:
        self._unsaved.append((last_offset, producer_id, first_offset, last_stable_offset))
        self._newest = last_offset

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
        found: list[AbortedRange] = []
        if start > self._newest:
            return found
        rows = self._store.iterate(
            "SELECT producer_id, first_offset, last_offset, last_stable_offset FROM aborted_transactions"
            " WHERE partition_id = ? AND last_offset >= ? ORDER BY last_offset",
            (partition_id, start),
        )
        for row in rows:
            producer_id, first_offset, last_offset, last_stable_offset = map(as_int, row)
            if first_offset < end:
                found.append(AbortedRange(producer_id, first_offset, last_offset))
            if last_stable_offset >= end:
                break
        return found

    def forget(self, partition_id: int, last_offset: int) -> None:
        """Compaction removed all records of this transaction."""
        self._store.execute(
            "DELETE FROM aborted_transactions WHERE partition_id = ? AND last_offset = ?", (partition_id, last_offset)
        )

    def drop_before(self, partition_id: int, log_start: int) -> None:
        """Forget transactions that ended before the log start."""
        if self._newest >= 0:
            self._store.execute(
                "DELETE FROM aborted_transactions WHERE partition_id = ? AND last_offset < ?", (partition_id, log_start)
            )
