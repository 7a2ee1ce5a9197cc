"""What a partition wrote since its checkpoint, and when the next one is due.

A checkpoint bounds what a start after a crash has to read. A batch that begins or ends a transaction makes one due, so that
the state of transactions belongs to the same commit in all partitions and in the transaction coordinator.
"""

from __future__ import annotations

from broker.storage.segments.partition_table import mark_beyond_checkpoint, save_segments
from broker.storage.segments.segment import Segment
from broker.storage.segments.transactions import Transactions
from broker.storage.store.database import Store

CHECKPOINT_BYTES = 8 << 20
CHECKPOINT_BATCHES = 4000


class Checkpoint:
    """`is_passed`: the store knows that the active segment may reach beyond its checkpoint."""

    def __init__(self, store: Store, transactions: Transactions, *, is_passed: bool) -> None:
        self._store = store
        self._transactions = transactions
        self.is_passed = is_passed
        self.changed: dict[Segment, None] = {}  # segments that the store does not list as they are
        self._bytes = 0
        self._batches = 0

    def count(self, size: int) -> None:
        """A batch of this size was written."""
        self._bytes += size
        self._batches += 1

    @property
    def is_due(self) -> bool:
        return bool(
            self.changed
            or self._transactions.changed
            or self._bytes >= CHECKPOINT_BYTES
            or self._batches >= CHECKPOINT_BATCHES
        )

    def write(self, active: Segment, *, complete: bool) -> None:
        """Write ends and producers to the store. `complete`: no append is pending, so the store then lists everything."""
        store, partition_id = self._store, self._transactions.partition_id
        self.changed[active] = None
        for segment in self.changed:
            segment.save_index()
        save_segments(store, partition_id, self.changed)
        self.changed.clear()
        self._bytes = self._batches = 0
        self._transactions.save()
        if complete:
            mark_beyond_checkpoint(store, partition_id, False)
            self.is_passed = False
