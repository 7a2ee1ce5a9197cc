"""Transactions as the store keeps them: the newest row of each transactional id in __transaction_state."""

from __future__ import annotations

from collections.abc import Iterator

from broker.storage.rows.compacted_tables import CompactedTables
from broker.storage.rows.row_topic import RowTopic
from broker.storage.rows.topic_row import TopicRow

ALL_KEYS = b"", b"\xff"


class StoredTransactions:
    """Look-ups see every appended row, flushed or not."""

    def __init__(self, topic: RowTopic) -> None:
        assert isinstance(topic.tables, CompactedTables)
        self._topic = topic
        self._tables = topic.tables

    @property
    def is_empty(self) -> bool:
        """No transactional id was ever stored."""
        return not any(self._topic.next_offsets)

    def newest_rows(self) -> Iterator[TopicRow]:
        """The newest row of each transactional id that is not deleted. Read all of them before the next append."""
        self._topic.settle()
        return self._tables.newest(*ALL_KEYS)
