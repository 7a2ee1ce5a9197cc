"""Rows of a compacted topic with many partitions: one table in commit order, and indexes that follow later.

Index entries of many partitions and keys lie on many pages; writing them at each flush would multiply what it
syncs. So rows go to PREFIX_log in commit order. PREFIX_positions (partition, offset) and PREFIX_latest (the newest
row of each key) are brought up to date before a read, and every SETTLE_ROWS rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from broker.storage.rows.row_topic import PendingRow, RowSource
from broker.storage.rows.topic_row import TopicRow, check_crc
from broker.storage.store.database import Store
from broker.storage.store.values import Row, as_bytes, as_int
from broker.storage.topic_configs import Policy

SETTLE_ROWS = 2048
MOST_UNSETTLED_ROWS = 8 * SETTLE_ROWS
# Like an active segment, the newest rows are never compacted: a reader that keeps up sees every record.
UNCOMPACTED_ROWS = 10_000
SLICE_ROWS = 2_000


class CompactedTables:
    """The tables PREFIX_log, PREFIX_positions and PREFIX_latest.

    `meta` starts the names of the values in meta: settled_seq (the last row that the indexes know), compacted_seq and
    compacted_rows (the last row and the number of rows after the last compaction). `derive` is called with
    settled_seq before and after whenever the indexes follow, to bring other tables up to date in the same transaction.
    `superseded_by` is an SQL expression: a row goes once a newer row has this key, which is its own by default.
    """

    cleanup = "compact"

    def __init__(
        self,
        store: Store,
        topic: str,
        partition_count: int,
        *,
        prefix: str,
        meta: str = "",
        derive: Callable[[int, int], None] | None = None,
        superseded_by: str = "o.key",
    ) -> None:
        self._store = store
        self._topic = topic
        self._partition_count = partition_count
        self._log = f"{prefix}_log"
        self._positions = f"{prefix}_positions"
        self._latest = f"{prefix}_latest"
        self._meta = meta
        self._derive = derive
        self._superseded_by = superseded_by
        self.source = RowSource(
            tables=f"{self._positions} AS p CROSS JOIN {self._log} AS o ON o.seq = p.seq",
            row='o.partition, o."offset", o.key, o.value, o.timestamp, o.crc',
            partition="p.partition",
            offset='p."offset"',
            timestamp="o.timestamp",
        )
        self._settled_seq = int(store.meta(f"{meta}settled_seq") or 0)
        newest = store.query(f"SELECT max(seq) FROM {self._log}")[0][0]
        self._last_seq = max(self._settled_seq, as_int(newest or 0))

    def next_offsets(self) -> list[int]:
        next_offsets = [0] * self._partition_count
        sql = f'SELECT "offset" FROM {self._positions} WHERE partition = ? ORDER BY "offset" DESC LIMIT 1'
        for partition in range(self._partition_count):
            for (offset,) in self._store.query(sql, (partition,)):
                next_offsets[partition] = as_int(offset) + 1
        sql = f'SELECT partition, max("offset") FROM {self._log} WHERE seq > ? GROUP BY partition'
        for partition_, offset in self._store.query(sql, (self._settled_seq,)):
            next_offsets[as_int(partition_)] = as_int(offset) + 1
        return next_offsets

    def log_start(self, partition: int) -> int:
        return 0

    def size_bytes(self, partition: int) -> int:
        rows = self._store.query(
            f"SELECT sum(length(o.key) + ifnull(length(o.value), 0)) FROM {self.source.tables} WHERE p.partition = ?",
            (partition,),
        )
        return as_int(rows[0][0] or 0)

    def newest(self, low: bytes, high: bytes) -> Iterator[TopicRow]:
        """The newest row of each key in low <= key < high, without tombstones. The caller settles first."""
        rows = self._store.iterate(
            f"SELECT {self.source.row} FROM {self._latest} AS l CROSS JOIN {self._log} AS o ON o.seq = l.seq"
            " WHERE l.key >= ? AND l.key < ? AND o.value IS NOT NULL",
            (low, high),
        )
        for row in rows:
            yield self._checked(row)

    def all_rows(self) -> Iterator[TopicRow]:
        """Every row that compaction has left, in commit order. The caller settles first."""
        for row in self._store.iterate(f"SELECT {self.source.row} FROM {self._log} AS o ORDER BY o.seq"):
            yield self._checked(row)

    def newest_page(self, low: bytes, high: bytes, keys: int) -> tuple[list[tuple[int, TopicRow]], bytes | None]:
        """The same for the first keys of the range, with sequence numbers, and where the next page begins, if there is one."""
        rows = self._store.query(
            f"SELECT l.key, l.seq, {self.source.row} FROM {self._latest} AS l"
            f" CROSS JOIN {self._log} AS o ON o.seq = l.seq WHERE l.key >= ? AND l.key < ? ORDER BY l.key LIMIT ?",
            (low, high, keys),
        )
        page = [(as_int(row[1]), self._checked(row[2:])) for row in rows if row[5] is not None]
        return page, as_bytes(rows[-1][0]) + b"\0" if len(rows) == keys else None

    def _checked(self, row: Row) -> TopicRow:
        partition, stored = check_crc(self._topic, row)
        return TopicRow(partition, stored.key, stored.value, stored.timestamp_ms)

    # -- appending and indexing

    def insert(self, rows: list[PendingRow]) -> None:
        # The rows' checksums stand for the rows in the digest of the commit.
        self._store.mix(b"".join([row[5].to_bytes(4, "big") for row in rows]))
        self._store.execute_many(
            f'INSERT INTO {self._log} (partition, "offset", key, value, timestamp, crc) VALUES (?, ?, ?, ?, ?, ?)',
            rows,
            mixed=True,
        )
        self._last_seq += len(rows)

    def settle_if_due(self) -> bool:
        """Settle SETTLE_ROWS rows, or more while very many wait: one request can append ten thousand. True: more are due."""
        waiting = self._last_seq - self._settled_seq
        if waiting >= SETTLE_ROWS:
            self._settle_until(self._settled_seq + max(SETTLE_ROWS, waiting - MOST_UNSETTLED_ROWS))
        return self._last_seq - self._settled_seq >= SETTLE_ROWS

    @property
    def last_seq(self) -> int:
        """The sequence number of the last inserted row."""
        return self._last_seq

    def settle(self) -> None:
        if self._settled_seq < self._last_seq:
            self._settle_until(self._last_seq)

    def _settle_until(self, last: int) -> None:
        after = self._settled_seq
        self._store.derive(
            f'INSERT INTO {self._positions} SELECT partition, "offset", seq FROM {self._log}'
            ' WHERE seq > ? AND seq <= ? ORDER BY partition, "offset"',
            (after, last),
        )
        self._store.derive(
            f"INSERT INTO {self._latest} SELECT key, max(seq) FROM {self._log} WHERE seq > ? AND seq <= ?"
            " GROUP BY key ORDER BY key ON CONFLICT DO UPDATE SET seq = excluded.seq",
            (after, last),
        )
        if self._derive is not None:
            self._derive(after, last)
        self._store.derive(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (f"{self._meta}settled_seq", str(last)),
        )
        self._settled_seq = last

    # -- compaction

    def clean(
        self, policy: Policy, wall_ms: int, next_offsets: Sequence[int], high_watermarks: Sequence[int]
    ) -> Iterator[None]:
        """Compact once as many rows were appended as stayed after the last pass."""
        appended = self._last_seq - int(self._store.meta(f"{self._meta}compacted_seq") or 0)
        stayed = int(self._store.meta(f"{self._meta}compacted_rows") or 0)
        if appended >= max(2 * UNCOMPACTED_ROWS, stayed):
            yield from self.compact(wall_ms - policy.delete_retention_ms, next_offsets)

    def compact(
        self,
        oldest_tombstone_ms: int,
        next_offsets: Sequence[int],
        *,
        uncompacted_rows: int = UNCOMPACTED_ROWS,
        slice_rows: int = SLICE_ROWS,
    ) -> Iterator[None]:
        """One pass over all rows but the newest: superseded rows go, and tombstones from before `oldest_tombstone_ms`.

        The last row of each partition stays whatever it is: the start takes the end of the partition from it.
        """
        self.settle()
        end = self._last_seq - uncompacted_rows
        stayed = uncompacted_rows
        seq = 0
        while seq < end:
            until = min(end, self._slice_end(seq, slice_rows))
            stayed += self._compact_slice(seq, until, oldest_tombstone_ms, [offset - 1 for offset in next_offsets])
            seq = until
            yield
        self._store.set_meta(f"{self._meta}compacted_seq", str(self._last_seq))
        self._store.set_meta(f"{self._meta}compacted_rows", str(stayed))

    def _compact_slice(self, after: int, until: int, oldest_tombstone_ms: int, last_offsets: list[int]) -> int:
        """Compact the rows after < seq <= until; return how many stay."""
        stayed = 0
        superseded: list[tuple[int, int, int]] = []
        forgotten: list[tuple[bytes]] = []
        is_own = self._superseded_by == "o.key"
        last_of_key = "l.seq = o.seq" if is_own else f"(SELECT seq FROM {self._latest} WHERE key = o.key) = o.seq"
        for row in self._store.query(
            'SELECT o.seq, o.partition, o."offset", o.key, o.value IS NULL AND o.timestamp < ?, ifnull(l.seq, 0) <= o.seq,'
            f" {last_of_key} FROM {self._log} AS o LEFT JOIN {self._latest} AS l ON l.key = {self._superseded_by}"
            " WHERE o.seq > ? AND o.seq <= ?",
            (oldest_tombstone_ms, after, until),
        ):
            seq, partition, offset = as_int(row[0]), as_int(row[1]), as_int(row[2])
            key, expired, newest, is_last = row[3:]
            if offset == last_offsets[partition] or (newest and not expired):
                stayed += 1
                continue
            superseded.append((seq, partition, offset))
            if is_last:
                forgotten.append((as_bytes(key),))
        if superseded:
            self._store.execute_many(
                f'DELETE FROM {self._positions} WHERE partition = ? AND "offset" = ?', [row[1:] for row in superseded]
            )
            self._store.execute_many(f"DELETE FROM {self._log} WHERE seq = ?", [row[:1] for row in superseded])
        if forgotten:
            self._store.execute_many(f"DELETE FROM {self._latest} WHERE key = ?", forgotten)
        return stayed

    def _slice_end(self, after: int, slice_rows: int) -> int:
        """The sequence number `slice_rows` rows further on; gaps that earlier passes left cost nothing."""
        found = self._store.query(
            f"SELECT seq FROM {self._log} WHERE seq > ? ORDER BY seq LIMIT 1 OFFSET ?", (after, slice_rows)
        )
        return as_int(found[0][0]) if found else 2**63 - 1
