"""The newest rows of topics that are kept as rows of the store, and rows in the order of their offsets."""

from __future__ import annotations

from collections.abc import Iterator

from broker.storage.inspection.store_copy import StoreCopy
from broker.storage.rows.group_keys import kafka_string, offset_prefix
from broker.storage.rows.offset_removals import TOPIC
from broker.storage.rows.topic_row import StoredRow, TopicRow, check_crc
from broker.storage.store.values import as_int

OFFSETS, TRANSACTIONS, EVENTS = "__consumer_offsets", "__transaction_state", "__kgctl_group_events"
SHARE_STATE = "__share_group_state"
# The names of the tables of compacted topics begin so.
PREFIXES = {OFFSETS: "offsets", TRANSACTIONS: "transactions", SHARE_STATE: "share_state"}
_TABLES = {topic: f"{prefix}_log" for topic, prefix in PREFIXES.items()}
_ROW = 'partition, "offset", key, value, timestamp, crc'
_EVENT = '0, "offset", key, value, timestamp, crc'


def newest_rows(copy: StoreCopy, topic: str) -> Iterator[TopicRow]:
    """The newest row of each key of a compacted topic, without tombstones, sorted by key. StoreDamageError: a row is damaged."""
    table = _TABLES[topic]
    removed = _Removals(copy) if topic == OFFSETS else None
    newest = f"SELECT max(seq) FROM {table} GROUP BY key"
    for row in copy.iterate(
        f"SELECT {_ROW}, seq FROM {table} WHERE seq IN ({newest}) AND value IS NOT NULL ORDER BY key"
    ):
        partition, stored = check_crc(topic, row[:6])
        if removed is None or not removed.cover(stored.key, as_int(row[6])):
            yield TopicRow(partition, stored.key, stored.value, stored.timestamp_ms)


def rows_by_offset(copy: StoreCopy, topic: str) -> Iterator[tuple[int, StoredRow]]:
    """All rows with their partitions, in the order of partitions and offsets."""
    sql = (
        f'SELECT {_EVENT} FROM group_events ORDER BY "offset"'
        if topic == EVENTS
        else f'SELECT {_ROW} FROM {_TABLES[topic]} ORDER BY partition, "offset"'
    )
    for row in copy.iterate(sql):
        yield check_crc(topic, row)


def bounds(copy: StoreCopy, topic: str) -> dict[int, tuple[int, int, int, int, int]]:
    """By partition with rows: first and next offset, bytes of keys and values, first and last timestamp."""
    table, partition = ("group_events", "0") if topic == EVENTS else (_TABLES[topic], "partition")
    rows = copy.query(
        f'SELECT {partition} AS p, min("offset"), max("offset") + 1, sum(length(key) + ifnull(length(value), 0)),'
        f" min(timestamp), max(timestamp) FROM {table} GROUP BY p"
    )
    return {
        as_int(row[0]): (as_int(row[1]), as_int(row[2]), as_int(row[3]), as_int(row[4]), as_int(row[5])) for row in rows
    }


class _Removals:
    """Offsets that were removed together, and whose tombstones may be missing."""

    def __init__(self, copy: StoreCopy) -> None:
        self._topics: dict[bytes, int] = {}
        self._groups: dict[bytes, int] = {}
        for kind, name, seq in copy.query("SELECT kind, name, seq FROM offset_removals"):
            if kind == TOPIC:
                self._topics[kafka_string(str(name))] = as_int(seq)
            else:
                self._groups[offset_prefix(str(name))] = as_int(seq)

    def cover(self, key: bytes, seq: int) -> bool:
        prefix = key[: 4 + int.from_bytes(key[2:4], "big")]
        return seq <= self._topics.get(key[len(prefix) : -4], 0) or seq <= self._groups.get(prefix, 0)
