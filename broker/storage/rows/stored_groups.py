"""Consumer groups in the store: the rows of __consumer_offsets by group, and generation floors."""

from __future__ import annotations

from collections.abc import Iterator

from broker.storage.rows.compacted_tables import CompactedTables
from broker.storage.rows.group_index import indexed_groups
from broker.storage.rows.group_keys import (
    AFTER_METADATA_KEYS,
    METADATA_KEYS,
    OFFSET_KEYS,
    after,
    group_of,
    kafka_string,
    offset_prefix,
)
from broker.storage.rows.row_topic import RowTopic
from broker.storage.rows.topic_row import TopicRow
from broker.storage.store.database import Store
from broker.storage.store.values import as_bytes, as_int


class StoredGroups:
    """Look-ups see every appended row, flushed or not."""

    def __init__(self, store: Store, offsets: RowTopic) -> None:
        assert isinstance(offsets.tables, CompactedTables)
        self._store = store
        self._topic = offsets
        self._tables = offsets.tables

    # -- rows of __consumer_offsets

    def metadata_rows(self) -> Iterator[TopicRow]:
        """The newest metadata row of each group that is not deleted."""
        self._topic.settle()
        return self._tables.newest(METADATA_KEYS, AFTER_METADATA_KEYS)

    def offset_rows(self, group_id: str) -> list[TopicRow]:
        """The newest row of each committed offset of one group."""
        self._topic.settle()
        prefix = offset_prefix(group_id)
        return list(self._tables.newest(prefix, after(prefix)))

    def ids_with_offsets(self) -> Iterator[str]:
        """Group ids with a live offset."""
        self._topic.settle()
        return indexed_groups(self._store)

    def ids_with_offsets_of(self, topic: str) -> list[str]:
        """Group ids with a live offset of this topic. Reads the keys of all offsets."""
        self._topic.settle()
        wanted = kafka_string(topic)
        rows = self._store.iterate(
            "SELECT l.key FROM offsets_latest AS l CROSS JOIN offsets_log AS o ON o.seq = l.seq"
            " WHERE l.key >= ? AND l.key < ? AND instr(l.key, ?) > 0 AND o.value IS NOT NULL",
            (OFFSET_KEYS, METADATA_KEYS, wanted),
        )
        groups: dict[str, None] = {}
        for (key,) in rows:
            prefix, group_id = group_of(as_bytes(key))
            if as_bytes(key)[len(prefix) : -4] == wanted:
                groups[group_id] = None
        return list(groups)

    # -- generation floors

    def set_generation_floor(self, group_id: str, generation: int | None) -> None:
        """None removes the floor of a deleted group."""
        if generation is None:
            self._store.execute("DELETE FROM generation_floors WHERE group_id = ?", (group_id,))
        else:
            self._store.execute(
                "INSERT INTO generation_floors VALUES (?, ?) ON CONFLICT DO UPDATE SET generation = excluded.generation",
                (group_id, generation),
            )

    def generation_floors(self) -> dict[str, int]:
        """The highest generation that any member of a group may have learned, by group id."""
        rows = self._store.query("SELECT group_id, generation FROM generation_floors")
        return {str(group_id): as_int(generation) for group_id, generation in rows}
