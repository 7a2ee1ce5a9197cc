"""Consumer groups in the store: the rows of __consumer_offsets by group, and generation floors."""

from __future__ import annotations

from collections.abc import Iterator

from broker.storage.rows.compacted_tables import CompactedTables
from broker.storage.rows.group_index import doubt_group, indexed_groups, resolve_doubts
from broker.storage.rows.group_keys import (
    AFTER_METADATA_KEYS,
    METADATA_KEYS,
    after,
    offset_prefix,
)
from broker.storage.rows.offset_removals import GROUP, TOPIC, OffsetRemovals
from broker.storage.rows.row_topic import RowTopic
from broker.storage.rows.topic_row import TopicRow
from broker.storage.store.database import Store
from broker.storage.store.values import as_int

PAGE_ROWS = 500


class StoredGroups:
    """Look-ups see every appended row, flushed or not."""

    def __init__(self, store: Store, offsets: RowTopic) -> None:
        assert isinstance(offsets.tables, CompactedTables)
        self._store = store
        self._topic = offsets
        self._tables = offsets.tables
        self._removals = OffsetRemovals(store)

    # -- rows of __consumer_offsets

    def metadata_rows(self) -> Iterator[TopicRow]:
        """The newest row of each key of a group's metadata that is not deleted."""
        self._topic.settle()
        return self._tables.newest(METADATA_KEYS, AFTER_METADATA_KEYS)

    def offset_rows(self, group_id: str) -> list[TopicRow]:
        """The newest row of each committed offset of one group."""
        return [row for page in self.offset_pages(group_id) for row in page]

    def offset_pages(self, group_id: str) -> Iterator[list[TopicRow]]:
        """The same in pages of at most PAGE_ROWS; appends and flushes may run between them, but no commit of this group."""
        prefix = offset_prefix(group_id)
        low: bytes | None = prefix
        while low is not None:
            self._topic.settle()
            page, low = self._tables.newest_page(low, after(prefix), PAGE_ROWS)
            if self._removals:
                yield [row for seq, row in page if not self._removals.covers(row.key, seq)]
            else:
                yield [row for _, row in page]

    def ids_with_offsets(self) -> Iterator[str]:
        """Group ids with a live offset."""
        self._topic.settle()
        return indexed_groups(self._store, self._removals.covers)

    # -- offsets that are removed together

    def remove_topic(self, topic: str) -> None:
        """Remove what all groups have committed for a topic, in the transaction of the next flush. See `tombstones`."""
        self._topic.settle()
        if self._store.query("SELECT 1 FROM offsets_groups LIMIT 1"):
            self._removals.add(TOPIC, topic, self._tables.last_seq)

    def remove_group(self, group_id: str) -> None:
        """Remove what a group has committed, in the transaction of the next flush. See `tombstones`."""
        self._topic.settle()
        self._removals.add(GROUP, group_id, self._tables.last_seq)
        doubt_group(self._store, group_id, self._tables.last_seq)

    @property
    def has_removals(self) -> bool:
        """Whether tombstones of removed offsets are still to be appended."""
        return bool(self._removals)

    def tombstones(self, wall_ms: int) -> Iterator[list[TopicRow]]:
        """The tombstones of removed offsets, in slices to be appended; flushes and other appends may run between them."""
        self._topic.settle()
        for rows in self._removals.tombstones(wall_ms):
            yield rows
            self._topic.settle()

    def resolve_doubts(self) -> Iterator[None]:
        """Bring the index of groups with live offsets up to date, in slices; flushes and appends may run between them."""
        self._topic.settle()
        for _ in resolve_doubts(self._store, self._removals.covers):
            yield
            self._topic.settle()

    def settle_slice(self) -> bool:
        """Bring the indexes a slice closer to the appended rows, which a query would do at once. True: another slice is due."""
        return self._topic.settle_slice()

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
