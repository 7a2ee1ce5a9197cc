"""Rows of a topic with one partition and a retention: one table keyed by offset, trimmed from the front.

The offset is the only key, so no index has to follow. Each row carries the size of all rows up to it, which makes
the size of what a limit keeps a subtraction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker.storage.rows.row_topic import PendingRow, RowSource
from broker.storage.store.database import Store
from broker.storage.store.values import as_int
from broker.storage.topic_configs import Policy

SLICE_ROWS = 500


class RetainedTables:
    """The table `table`; the log start offset is in meta as `table`_start."""

    cleanup = "delete"

    def __init__(self, store: Store, table: str) -> None:
        self._store = store
        self._table = table
        self._start_name = f"{table}_start"
        self.source = RowSource(
            tables=f"{table} AS o",
            row='0, o."offset", o.key, o.value, o.timestamp, o.crc',
            partition="0",
            offset='o."offset"',
            timestamp="o.timestamp",
        )
        self._start = int(store.meta(self._start_name) or 0)
        newest = store.query(f'SELECT "offset", end_bytes FROM {table} ORDER BY "offset" DESC LIMIT 1')
        self._next = max(self._start, as_int(newest[0][0]) + 1) if newest else self._start
        self._end_bytes = as_int(newest[0][1]) if newest else 0

    def next_offsets(self) -> list[int]:
        return [self._next]

    def log_start(self, partition: int) -> int:
        return self._start

    def size_bytes(self, partition: int) -> int:
        oldest = self._store.query(
            f'SELECT end_bytes - length(key) - length(value) FROM {self._table} ORDER BY "offset" LIMIT 1'
        )
        return self._end_bytes - as_int(oldest[0][0]) if oldest else 0

    def insert(self, rows: list[PendingRow]) -> None:
        sized = []
        for _, offset, key, value, timestamp_ms, crc in rows:
            assert value is not None, "only a compacted topic has tombstones"
            self._end_bytes += len(key) + len(value)
            sized.append((offset, key, value, timestamp_ms, self._end_bytes, crc))
        self._store.execute_many(f"INSERT INTO {self._table} VALUES (?, ?, ?, ?, ?, ?)", sized)

    def settle(self) -> None:
        """There are no indexes."""

    def settle_if_due(self) -> bool:
        """There are no indexes."""
        return False

    def clean(
        self, policy: Policy, wall_ms: int, next_offsets: Sequence[int], high_watermarks: Sequence[int]
    ) -> Iterator[None]:
        """Drop durable rows older than retention.ms, and rows whose successors alone fill retention.bytes."""
        if not policy.delete:
            return
        oldest_ms = wall_ms - policy.retention_ms if policy.retention_ms >= 0 else None
        limit_bytes = policy.retention_bytes if policy.retention_bytes >= 0 else None
        while self._drop_slice(oldest_ms, limit_bytes, high_watermarks[0]) == SLICE_ROWS:
            yield

    def _drop_slice(self, oldest_ms: int | None, limit_bytes: int | None, high_watermark: int) -> int:
        rows = self._store.query(
            f'SELECT "offset", timestamp, end_bytes FROM {self._table} WHERE "offset" < ? ORDER BY "offset" LIMIT ?',
            (high_watermark, SLICE_ROWS),
        )
        dropped = 0
        for _, timestamp_ms, end_bytes in rows:
            too_old = oldest_ms is not None and as_int(timestamp_ms) < oldest_ms
            over_limit = limit_bytes is not None and self._end_bytes - as_int(end_bytes) >= limit_bytes
            if not (too_old or over_limit):
                break
            dropped += 1
        if dropped:
            self._start = as_int(rows[dropped - 1][0]) + 1
            self._store.execute(f'DELETE FROM {self._table} WHERE "offset" < ?', (self._start,))
            self._store.set_meta(self._start_name, str(self._start))
        return dropped
