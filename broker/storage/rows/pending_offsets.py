"""Offsets that a transaction commits for groups, from TxnOffsetCommit to the end of the transaction."""

from __future__ import annotations

from collections.abc import Iterable

from broker.light_named_tuples import NamedTuple
from broker.storage.store.database import Store
from broker.storage.store.values import as_int, as_text

_COLUMNS = (
    'producer_id, producer_epoch, group_id, topic, partition, "offset", leader_epoch, metadata, commit_timestamp_ms,'
    " superseded"
)
_OF_GROUP = "producer_id = ? AND group_id = ?"


class StoredPendingOffset(NamedTuple):
    """One offset. `superseded`: a later OffsetCommit replaces it."""

    producer_id: int
    producer_epoch: int
    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    superseded: bool = False


class StoredPendingOffsets:
    """Changes are part of the next flush."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def is_empty(self) -> bool:
        return not self._store.query("SELECT 1 FROM pending_offsets LIMIT 1")

    def put(self, offsets: Iterable[StoredPendingOffset]) -> None:
        """Add offsets behind all others; each replaces what its transaction commits for the same group and partition."""
        self._store.execute_many(
            f"INSERT OR REPLACE INTO pending_offsets ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*offset[:-1], int(offset.superseded)) for offset in offsets],
        )

    def delete(self, producer_id: int, group_id: str) -> None:
        """Delete all that the transaction of this producer commits for a group."""
        self._store.execute(f"DELETE FROM pending_offsets WHERE {_OF_GROUP}", (producer_id, group_id))

    def supersede(self, producer_id: int, group_id: str, partitions: Iterable[tuple[str, int]]) -> None:
        """Mark single offsets as superseded: (topic, partition). Their order stays."""
        self._of_partitions("UPDATE pending_offsets SET superseded = 1", producer_id, group_id, partitions)

    def delete_partitions(self, producer_id: int, group_id: str, partitions: Iterable[tuple[str, int]]) -> None:
        """Delete single offsets: (topic, partition)."""
        self._of_partitions("DELETE FROM pending_offsets", producer_id, group_id, partitions)

    def _of_partitions(
        self, change: str, producer_id: int, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> None:
        self._store.execute_many(
            f"{change} WHERE {_OF_GROUP} AND topic = ? AND partition = ?",
            [(producer_id, group_id, topic, partition) for topic, partition in partitions],
        )

    def all(self) -> list[StoredPendingOffset]:
        """All offsets in the order in which they were put."""
        return [
            StoredPendingOffset(
                as_int(row[0]),
                as_int(row[1]),
                as_text(row[2]),
                as_text(row[3]),
                as_int(row[4]),
                as_int(row[5]),
                as_int(row[6]),
                as_text(row[7]),
                as_int(row[8]),
                bool(row[9]),
            )
            for row in self._store.query(f"SELECT {_COLUMNS} FROM pending_offsets ORDER BY position")
        ]
