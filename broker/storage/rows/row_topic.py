"""A topic kept as rows of the store: rows are appended in commit order, indexed by its tables, and read by partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from broker.light_named_tuples import NamedTuple
from broker.storage.rows.topic_row import RowLike, StoredRow, check_crc, row_crc
from broker.storage.store.database import Store
from broker.storage.store.values import as_int
from broker.storage.topic_configs import Policy

TIMESTAMPS_AT_ONCE = 1_000
# (partition, offset, key, value, timestamp, crc)
PendingRow = tuple[int, int, bytes, bytes | None, int, int]


class RowSource(NamedTuple):
    """SQL that selects the rows of one partition by offset: a FROM clause and expressions over it."""

    tables: str
    row: str  # partition, offset, key, value, timestamp, crc
    partition: str
    offset: str
    timestamp: str


class RowTables(Protocol):
    """How the rows of a topic lie in the store, and how old ones are removed."""

    source: RowSource
    cleanup: str  # "compact" or "delete", Kafka's cleanup.policy

    def next_offsets(self) -> list[int]:
        """The next offset of each partition, read at the start."""

    def log_start(self, partition: int) -> int: ...

    def size_bytes(self, partition: int) -> int:
        """Bytes of keys and values, without the framing of a batch."""

    def insert(self, rows: list[PendingRow]) -> None:
        """Write rows to the open transaction."""

    def settle(self) -> None:
        """Bring the indexes up to date."""

    def settle_if_due(self) -> bool:
        """Bring the indexes a slice closer once many rows are missing from them. True: another slice is due."""

    def clean(
        self, policy: Policy, wall_ms: int, next_offsets: Sequence[int], high_watermarks: Sequence[int]
    ) -> Iterator[None]:
        """Remove what compaction or retention no longer keeps, in slices; appends and flushes may run between them."""


class RowTopic:
    """Offsets of each partition: log start <= high watermark <= log end. `tables` decides layout and cleaning."""

    def __init__(self, name: str, tables: RowTables, store: Store) -> None:
        self.name = name
        self.tables = tables
        self._store = store
        self.pending: list[PendingRow] = []  # appended rows that are not in the store's transaction yet
        self.next_offsets = tables.next_offsets()
        self._high_watermarks = list(self.next_offsets)

    @property
    def partition_count(self) -> int:
        return len(self.next_offsets)

    # -- appending

    def append(self, rows: Sequence[RowLike]) -> None:
        pending, next_offsets = self.pending, self.next_offsets
        for row in rows:
            partition, key, value, timestamp_ms = row.partition, row.key, row.value, row.timestamp_ms
            offset = next_offsets[partition]
            next_offsets[partition] = offset + 1
            crc = row_crc(partition, offset, key, value, timestamp_ms)
            pending.append((partition, offset, key, value, timestamp_ms, crc))

    def _insert_pending(self) -> None:
        if self.pending:
            self.tables.insert(self.pending)
            self.pending = []

    def before_flush(self) -> None:
        """Hand appended rows to the store's transaction."""
        self.settle_slice()

    def settle_slice(self) -> bool:
        """Bring the indexes a slice closer to the appended rows. True: another slice is due."""
        self._insert_pending()
        return self.tables.settle_if_due()

    def after_flush(self) -> None:
        """Show readers what is durable now."""
        self._high_watermarks = list(self.next_offsets)

    def settle(self) -> None:
        """Bring the indexes up to date with all appended rows."""
        self._insert_pending()
        self.tables.settle()

    def clean(self, policy: Policy, wall_ms: int) -> Iterator[None]:
        """Compaction or retention, in slices."""
        return self.tables.clean(policy, wall_ms, self.next_offsets, self._high_watermarks)

    # -- reading

    def log_start(self, partition: int) -> int:
        return self.tables.log_start(partition)

    def log_end(self, partition: int) -> int:
        return self.next_offsets[partition]

    def high_watermark(self, partition: int) -> int:
        return self._high_watermarks[partition]

    def size_bytes(self, partition: int) -> int:
        self.settle()
        return self.tables.size_bytes(partition)

    def read(self, partition: int, offset: int, limit: int) -> list[StoredRow]:
        """Up to `limit` rows from `offset` to the high watermark. Cleaning leaves gaps. StoreDamageError: a row is damaged."""
        self.settle()
        source = self.tables.source
        rows = self._store.query(
            f"SELECT {source.row} FROM {source.tables} WHERE {source.partition} = ? AND {source.offset} >= ?"
            f" AND {source.offset} < ? ORDER BY {source.offset} LIMIT ?",
            (partition, offset, self._high_watermarks[partition], limit),
        )
        return [check_crc(self.name, row)[1] for row in rows]

    def timestamps(self, partition: int) -> Iterator[list[tuple[int, int]]]:
        """(offset, timestamp) of all durable rows, in slices; appends and flushes may run between them."""
        source = self.tables.source
        offset = 0
        while offset < self._high_watermarks[partition]:
            self.settle()
            rows = self._store.query(
                f"SELECT {source.offset}, {source.timestamp} FROM {source.tables} WHERE {source.partition} = ?"
                f" AND {source.offset} >= ? AND {source.offset} < ? ORDER BY {source.offset} LIMIT ?",
                (partition, offset, self._high_watermarks[partition], TIMESTAMPS_AT_ONCE),
            )
            if not rows:
                return
            yield [(as_int(offset), as_int(timestamp_ms)) for offset, timestamp_ms in rows]
            offset = as_int(rows[-1][0]) + 1
