"""The rows of __consumer_offsets: appended in commit order, indexed later in bulk, read as a topic and by group.

Index entries of many partitions and keys lie on many pages, so writing them with each commit would multiply what
a round syncs. Rows therefore go to one table in the order of their commits; its indexes (position of an offset,
newest row of a key, groups with a live offset) are brought up to date when somebody asks, or every SETTLE_ROWS rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from broker.storage.catalog import OFFSETS_TOPIC
from broker.storage.rows.rows_partition import StoredRow, check_crc, row_crc
from broker.storage.store.database import Row, Store, Value

SETTLE_ROWS = 2048

_OFFSET_KEYS = b"\x00\x01"
_GROUP_KEYS = b"\x00\x02"
_AFTER_GROUP_KEYS = b"\x00\x03"
_ADD_GROUP = "INSERT INTO offsets_groups VALUES (?) ON CONFLICT DO NOTHING"


class OffsetsRowLike(Protocol):
    @property
    def partition(self) -> int: ...
    @property
    def key(self) -> bytes: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def timestamp_ms(self) -> int: ...


class OffsetsRow(NamedTuple):
    """One record of __consumer_offsets; value None is a tombstone."""

    partition: int
    key: bytes
    value: bytes | None
    timestamp_ms: int


class OffsetsRows:
    def __init__(self, store: Store, partition_count: int) -> None:
        self._store = store
        self._pending: list[Row] = []
        self.next_offsets = [0] * partition_count
        self.settled_seq = int(store.meta("settled_seq") or 0)
        sql = 'SELECT "offset" FROM offsets_positions WHERE partition = ? ORDER BY "offset" DESC LIMIT 1'
        for partition in range(partition_count):
            for (offset,) in store.query(sql, (partition,)):
                self.next_offsets[partition] = _int(offset) + 1
        sql = 'SELECT partition, max("offset"), max(seq) FROM offsets_log WHERE seq > ? GROUP BY partition'
        newest = 0
        for row_partition, offset, seq in store.query(sql, (self.settled_seq,)):
            self.next_offsets[_int(row_partition)] = _int(offset) + 1
            newest = max(newest, _int(seq))
        self.last_seq = max(self.settled_seq, newest)
        self.high_watermarks = list(self.next_offsets)
        if store.meta("groups_indexed") is None:
            # New, or of a format that had no such index.
            store.derive_many(_ADD_GROUP, [(prefix,) for prefix in self._scan_groups()])
            store.set_meta("groups_indexed", "1")

    # -- writing

    def append(self, rows: Sequence[OffsetsRowLike]) -> None:
        pending, next_offsets = self._pending, self.next_offsets
        for row in rows:
            partition, key, value, timestamp = row.partition, row.key, row.value, row.timestamp_ms
            offset = next_offsets[partition]
            next_offsets[partition] = offset + 1
            crc = row_crc(partition, offset, key, value, timestamp)
            pending.append((partition, offset, key, value, timestamp, crc))

    @property
    def dirty(self) -> bool:
        return bool(self._pending)

    def flush(self) -> None:
        """Hand buffered rows to the store's transaction."""
        pending = self._pending
        if not pending:
            return
        self._store.mix(b"".join([row[5].to_bytes(4, "big") for row in pending]))  # type: ignore[union-attr]
        self._store.execute_many(
            'INSERT INTO offsets_log (partition, "offset", key, value, timestamp, crc) VALUES (?, ?, ?, ?, ?, ?)',
            pending,
            mixed=True,
        )
        self.last_seq += len(pending)
        self._pending = []

    def before_commit(self) -> None:
        self.flush()
        if self.last_seq - self.settled_seq >= SETTLE_ROWS:
            self.settle()

    def after_commit(self) -> None:
        self.high_watermarks = list(self.next_offsets)

    def settle(self) -> None:
        """Bring the indexes up to date."""
        self.flush()
        after, last = self.settled_seq, self.last_seq
        if after == last:
            return
        self._store.derive(
            'INSERT INTO offsets_positions SELECT partition, "offset", seq FROM offsets_log'
            ' WHERE seq > ? ORDER BY partition, "offset"',
            (after,),
        )
        self._store.derive(
            "INSERT INTO offsets_latest SELECT key, max(seq) FROM offsets_log WHERE seq > ? GROUP BY key ORDER BY key"
            " ON CONFLICT DO UPDATE SET seq = excluded.seq",
            (after,),
        )
        self._settle_groups(after)
        self._store.derive(
            "INSERT INTO meta VALUES ('settled_seq', ?) ON CONFLICT DO UPDATE SET value = excluded.value", (str(last),)
        )
        self.settled_seq = last

    def _settle_groups(self, after: int) -> None:
        rows = self._store.query(
            "SELECT key, value IS NULL, max(seq) FROM offsets_log WHERE seq > ? AND key >= ? AND key < ? GROUP BY key",
            (after, _OFFSET_KEYS, _GROUP_KEYS),
        )
        live, doubtful = dict[bytes, None](), dict[bytes, None]()
        for key, is_tombstone, _ in rows:
            (doubtful if is_tombstone else live)[_group_of(_bytes(key))[0]] = None
        self._store.derive_many(_ADD_GROUP, [(prefix,) for prefix in live])
        gone = [(p,) for p in doubtful if p not in live and self._first_live(p, _after(p)) is None]
        self._store.derive_many("DELETE FROM offsets_groups WHERE prefix = ?", gone)

    # -- reading by group

    def _newest(self, low: bytes, high: bytes) -> Iterator[OffsetsRow]:
        self.settle()
        rows = self._store.iterate(
            'SELECT o.partition, o."offset", o.key, o.value, o.timestamp, o.crc FROM offsets_latest AS l'
            " CROSS JOIN offsets_log AS o ON o.seq = l.seq WHERE l.key >= ? AND l.key < ? AND o.value IS NOT NULL",
            (low, high),
        )
        for row in rows:
            partition, stored = _checked(row)
            yield OffsetsRow(partition, stored.key, stored.value, stored.timestamp_ms)

    def group_metadata_rows(self) -> Iterator[OffsetsRow]:
        return self._newest(_GROUP_KEYS, _AFTER_GROUP_KEYS)

    def offset_rows(self, group_id: str) -> list[OffsetsRow]:
        prefix = _offset_prefix(group_id)
        return list(self._newest(prefix, _after(prefix)))

    def groups_with_offsets(self) -> Iterator[str]:
        """Group ids that have a live offset."""
        self.settle()
        for (prefix,) in self._store.query("SELECT prefix FROM offsets_groups"):
            yield _group_of(_bytes(prefix))[1]

    def _scan_groups(self) -> list[bytes]:
        """The same from the rows themselves, as far as they are settled: one seek per group, but all over the store."""
        found, low = list[bytes](), _OFFSET_KEYS
        while (key := self._first_live(low, _GROUP_KEYS)) is not None:
            found.append(_group_of(key)[0])
            low = _after(found[-1])
        return found

    def _first_live(self, low: bytes, high: bytes) -> bytes | None:
        found = self._store.query(
            "SELECT l.key FROM offsets_latest AS l CROSS JOIN offsets_log AS o ON o.seq = l.seq"
            " WHERE l.key >= ? AND l.key < ? AND o.value IS NOT NULL ORDER BY l.key LIMIT 1",
            (low, high),
        )
        return _bytes(found[0][0]) if found else None

    def groups_with_offsets_of(self, topic: str) -> list[str]:
        """Group ids that have a live offset of this topic. Reads the keys of all offsets."""
        self.settle()
        wanted = _string(topic)
        rows = self._store.iterate(
            "SELECT l.key FROM offsets_latest AS l CROSS JOIN offsets_log AS o ON o.seq = l.seq"
            " WHERE l.key >= ? AND l.key < ? AND instr(l.key, ?) > 0 AND o.value IS NOT NULL",
            (_OFFSET_KEYS, _GROUP_KEYS, wanted),
        )
        groups: dict[str, None] = {}
        for (key,) in rows:
            prefix, group_id = _group_of(_bytes(key))
            if _bytes(key)[len(prefix) : -4] == wanted:
                groups[group_id] = None
        return list(groups)

    # -- reading as a topic

    def log_start(self, partition: int) -> int:
        return 0

    def log_end(self, partition: int) -> int:
        return self.next_offsets[partition]

    def high_watermark(self, partition: int) -> int:
        return self.high_watermarks[partition]

    def read(self, partition: int, offset: int, end_offset: int, limit: int) -> list[StoredRow]:
        """Up to `limit` rows with offset <= o < end_offset; offsets that compaction removed are missing."""
        self.settle()
        rows = self._store.query(
            'SELECT o.partition, o."offset", o.key, o.value, o.timestamp, o.crc FROM offsets_positions AS p'
            ' CROSS JOIN offsets_log AS o ON o.seq = p.seq WHERE p.partition = ? AND p."offset" >= ?'
            ' AND p."offset" < ? ORDER BY p."offset" LIMIT ?',
            (partition, offset, end_offset, limit),
        )
        return [_checked(row)[1] for row in rows]

    def find_timestamp(self, partition: int, timestamp: int, end_offset: int) -> tuple[int, int] | None:
        """(offset, timestamp) of the first row that is not older than `timestamp`."""
        return self._first(partition, end_offset, "o.timestamp >= ?", 'p."offset"', (timestamp,))

    def max_timestamp(self, partition: int, end_offset: int) -> tuple[int, int] | None:
        return self._first(partition, end_offset, "TRUE", 'o.timestamp DESC, p."offset"', ())

    def _first(
        self, partition: int, end_offset: int, condition: str, order: str, values: tuple[int, ...]
    ) -> tuple[int, int] | None:
        self.settle()
        rows = self._store.query(
            'SELECT o."offset", o.timestamp FROM offsets_positions AS p CROSS JOIN offsets_log AS o ON o.seq = p.seq'
            f' WHERE p.partition = ? AND p."offset" < ? AND {condition} ORDER BY {order} LIMIT 1',
            (partition, end_offset, *values),
        )
        return (_int(rows[0][0]), _int(rows[0][1])) if rows else None

    def size_bytes(self, partition: int) -> int:
        """Bytes of keys and values, without the framing that a reader sees."""
        self.settle()
        rows = self._store.query(
            "SELECT sum(length(o.key) + ifnull(length(o.value), 0)) FROM offsets_positions AS p"
            " CROSS JOIN offsets_log AS o ON o.seq = p.seq WHERE p.partition = ?",
            (partition,),
        )
        return _int(rows[0][0] or 0)


def _checked(row: Row) -> tuple[int, StoredRow]:
    partition = row[0]
    stored = check_crc(OFFSETS_TOPIC, row)
    assert isinstance(partition, int)
    return partition, stored


def _string(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big") + encoded


def _offset_prefix(group_id: str) -> bytes:
    return _OFFSET_KEYS + _string(group_id)


def _group_of(key: bytes) -> tuple[bytes, str]:
    end = 4 + int.from_bytes(key[2:4], "big")
    return key[:end], key[4:end].decode()


def _after(prefix: bytes) -> bytes:
    """The first key behind all keys that begin with `prefix`."""
    number = int.from_bytes(prefix, "big") + 1
    return number.to_bytes(len(prefix), "big")


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _bytes(value: Value) -> bytes:
    assert isinstance(value, bytes)
    return value
