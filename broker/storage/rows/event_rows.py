"""The rows of __kgctl_group_events: appended in commit order, read as a topic of one partition, dropped from the front.

One partition: a reader follows one position and sees all groups in the order in which things happened, and events are
few. So the offset alone is the key of the table, and no index needs care.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.storage.catalog import EVENTS_TOPIC
from broker.storage.rows.rows_partition import StoredRow, check_crc, row_crc
from broker.storage.store.database import Row, Store, Value

SLICE_ROWS = 500


class EventRow(NamedTuple):
    """One record of __kgctl_group_events."""

    key: bytes
    value: bytes
    timestamp_ms: int


class EventRows:
    """Like OffsetsRows, for one partition: what RowsPartition reads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pending: list[Row] = []
        self._start = int(store.meta("group_events_start") or 0)
        newest = store.query('SELECT "offset", end_bytes FROM group_events ORDER BY "offset" DESC LIMIT 1')
        self._next = max(self._start, _int(newest[0][0]) + 1 if newest else 0)
        self._end_bytes = _int(newest[0][1]) if newest else 0
        self._high_watermark = self._next

    # -- writing

    def append(self, rows: Sequence[EventRow]) -> None:
        for key, value, timestamp_ms in rows:
            self._end_bytes += len(key) + len(value)
            crc = row_crc(0, self._next, key, value, timestamp_ms)
            self._pending.append((self._next, key, value, timestamp_ms, self._end_bytes, crc))
            self._next += 1

    @property
    def dirty(self) -> bool:
        return bool(self._pending)

    def before_commit(self) -> None:
        """Hand buffered rows to the store's transaction."""
        pending, self._pending = self._pending, []
        if pending:
            self._store.execute_many("INSERT INTO group_events VALUES (?, ?, ?, ?, ?, ?)", pending)

    def after_commit(self) -> None:
        self._high_watermark = self._next

    # -- retention

    def retain(self, oldest_ms: int | None, most_bytes: int | None) -> Iterator[None]:
        """Drop rows from the front while they are older than `oldest_ms`, or what follows them fills `most_bytes`; in slices."""
        while self._drop_slice(oldest_ms, most_bytes) == SLICE_ROWS:
            yield

    def _drop_slice(self, oldest_ms: int | None, most_bytes: int | None) -> int:
        rows = self._store.query(
            'SELECT "offset", timestamp, end_bytes FROM group_events WHERE "offset" < ? ORDER BY "offset" LIMIT ?',
            (self._high_watermark, SLICE_ROWS),
        )
        dropped = 0
        for _, timestamp, end_bytes in rows:
            too_old = oldest_ms is not None and _int(timestamp) < oldest_ms
            too_many = most_bytes is not None and self._end_bytes - _int(end_bytes) >= most_bytes
            if not (too_old or too_many):
                break
            dropped += 1
        if dropped:
            self._start = _int(rows[dropped - 1][0]) + 1
            self._store.execute('DELETE FROM group_events WHERE "offset" < ?', (self._start,))
            self._store.set_meta("group_events_start", str(self._start))
        return dropped

    # -- reading as a topic

    def log_start(self, partition: int) -> int:
        return self._start

    def log_end(self, partition: int) -> int:
        return self._next

    def high_watermark(self, partition: int) -> int:
        return self._high_watermark

    def read(self, partition: int, offset: int, end_offset: int, limit: int) -> list[StoredRow]:
        rows = self._store.query(
            'SELECT "offset", key, value, timestamp, crc FROM group_events WHERE "offset" >= ? AND "offset" < ?'
            ' ORDER BY "offset" LIMIT ?',
            (offset, end_offset, limit),
        )
        return [check_crc(EVENTS_TOPIC, (0, *row)) for row in rows]

    def find_timestamp(self, partition: int, timestamp: int, end_offset: int) -> tuple[int, int] | None:
        return self._first('timestamp >= ? AND "offset" < ? ORDER BY "offset"', (timestamp, end_offset))

    def max_timestamp(self, partition: int, end_offset: int) -> tuple[int, int] | None:
        return self._first('"offset" < ? ORDER BY timestamp DESC, "offset"', (end_offset,))

    def _first(self, condition: str, values: tuple[int, ...]) -> tuple[int, int] | None:
        rows = self._store.query(f'SELECT "offset", timestamp FROM group_events WHERE {condition} LIMIT 1', values)
        return (_int(rows[0][0]), _int(rows[0][1])) if rows else None

    def size_bytes(self, partition: int) -> int:
        oldest = self._store.query(
            'SELECT end_bytes - length(key) - length(value) FROM group_events ORDER BY "offset" LIMIT 1'
        )
        return self._end_bytes - _int(oldest[0][0]) if oldest else 0


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value
