"""Committed offsets that are removed together, of a deleted topic or group: gone at once, and their tombstones follow.

A removal covers the rows up to its sequence number. A later commit to a topic or group of the same name is newer.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.storage.rows.group_keys import METADATA_KEYS, OFFSET_KEYS, after, group_of, kafka_string, offset_prefix
from broker.storage.rows.topic_row import TopicRow
from broker.storage.store.database import Store
from broker.storage.store.values import as_bytes, as_int

TOPIC, GROUP = "topic", "group"
# How many keys a query reads.
SCANNED_KEYS = 500


class OffsetRemovals:
    """The removals whose tombstones are not complete."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._topics: dict[bytes, int] = {}  # the last covered row, by the topic as it is in a key
        self._groups: dict[bytes, int] = {}  # the same by the prefix of the group's keys
        for kind, name, seq in store.query("SELECT kind, name, seq FROM offset_removals"):
            self._note(str(kind), str(name), as_int(seq))

    def __bool__(self) -> bool:
        return bool(self._topics or self._groups)

    def add(self, kind: str, name: str, seq: int) -> None:
        """Remove what was committed up to the row `seq`, in the transaction of the next flush."""
        self._store.execute(
            "INSERT INTO offset_removals VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq",
            (kind, name, seq),
        )
        self._note(kind, name, seq)

    def _note(self, kind: str, name: str, seq: int) -> None:
        if kind == TOPIC:
            self._topics[kafka_string(name)] = seq
        else:
            self._groups[offset_prefix(name)] = seq

    def covers(self, key: bytes, seq: int) -> bool:
        """Whether the row `seq` of this key is removed."""
        prefix = key[: 4 + int.from_bytes(key[2:4], "big")]
        return seq <= self._topics.get(key[len(prefix) : -4], 0) or seq <= self._groups.get(prefix, 0)

    def tombstones(self, wall_ms: int) -> Iterator[list[TopicRow]]:
        """The tombstones to append, in slices, until no removal is left. Bring the indexes up to date before each slice."""
        while self:
            if self._groups:
                prefix, seq = next(iter(self._groups.items()))
                yield from self._scan(prefix, after(prefix), {}, seq, wall_ms)
                self._end(GROUP, group_of(prefix)[1], seq)
                if self._groups[prefix] == seq:
                    del self._groups[prefix]
            else:
                topics = dict(self._topics)
                yield from self._scan(OFFSET_KEYS, METADATA_KEYS, topics, 0, wall_ms)
                for topic, seq in topics.items():
                    self._end(TOPIC, topic[2:].decode(), seq)
                    if self._topics[topic] == seq:
                        del self._topics[topic]
            yield []

    def _scan(
        self, low: bytes, high: bytes, topics: dict[bytes, int], all_until: int, wall_ms: int
    ) -> Iterator[list[TopicRow]]:
        """Tombstones of the keys low <= key < high whose newest row is live and covered."""
        sql = "SELECT key, seq FROM offsets_latest WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
        while found := self._store.query(sql, (low, high, SCANNED_KEYS)):
            rows: list[TopicRow] = []
            for key, seq in found:
                assert isinstance(key, bytes)
                assert isinstance(seq, int)
                topic = key[4 + int.from_bytes(key[2:4], "big") : -4]
                if seq <= all_until or seq <= topics.get(topic, 0):
                    rows += self._tombstone(key, seq, wall_ms)
            yield rows
            low = as_bytes(found[-1][0]) + b"\0"

    def _tombstone(self, key: bytes, seq: int, wall_ms: int) -> list[TopicRow]:
        live = self._store.query("SELECT partition FROM offsets_log WHERE seq = ? AND value IS NOT NULL", (seq,))
        return [TopicRow(as_int(partition), key, None, wall_ms) for (partition,) in live]

    def _end(self, kind: str, name: str, seq: int) -> None:
        """Forget a removal, in the transaction of its last tombstones; not one that was repeated since."""
        self._store.execute("DELETE FROM offset_removals WHERE kind = ? AND name = ? AND seq = ?", (kind, name, seq))
