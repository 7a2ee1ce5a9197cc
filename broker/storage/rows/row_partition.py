"""One partition of a row topic, as clients read it: each row is one batch, so the bytes of an offset never change."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias

from broker.protocol.control_records import Marker
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import Record, build_batch
from broker.storage.files import FileSlice
from broker.storage.partition_log import LEADER_EPOCH, AbortedTransaction, Appended, ProducerState
from broker.storage.rows.row_topic import RowTopic
from broker.storage.rows.topic_row import StoredRow

# Building a batch for each row takes long, so one read returns at most this many, whatever the client allows.
READ_ROWS = 1024

Search: TypeAlias = "Generator[None, None, tuple[int, int] | None]"  # returns (offset, timestamp)


class RowPartition:
    """A PartitionLog over the rows of one partition. Clients may read it and not write to it."""

    leader_epoch = LEADER_EPOCH

    def __init__(self, topic: RowTopic, index: int) -> None:
        self._topic = topic
        self.index = index

    @property
    def log_start_offset(self) -> int:
        return self._topic.log_start(self.index)

    @property
    def log_end_offset(self) -> int:
        return self._topic.log_end(self.index)

    @property
    def high_watermark(self) -> int:
        return self._topic.high_watermark(self.index)

    @property
    def last_stable_offset(self) -> int:
        """Rows of the topic are never part of a transaction."""
        return self.high_watermark

    @property
    def size_bytes(self) -> int:
        return self._topic.size_bytes(self.index)

    def append(self, records: memoryview | bytes, *, wall_ms: int) -> Appended | ErrorCode:
        """Refuse: only the broker writes, through `Log.append_rows`."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION

    def append_marker(self, marker: Marker, *, wall_ms: int) -> Appended | ErrorCode:
        """Refuse: nothing here is part of a transaction."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        return False

    def start_verification(self, records: memoryview | bytes, *, adds_partition: bool, wall_ms: int) -> ErrorCode:
        return ErrorCode.INVALID_TOPIC_EXCEPTION

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        return []

    def producer_states(self) -> list[ProducerState]:
        return []

    def read(
        self, offset: int, max_bytes: int, *, at_least_one: bool, committed: bool = False
    ) -> bytes | FileSlice | None:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return None
        batches: list[bytes] = []
        room = max_bytes
        if offset < self.high_watermark and (room > 0 or at_least_one):
            for row in self._topic.read(self.index, offset, READ_ROWS):
                batch = _batch(row)
                if len(batch) > room and (batches or not at_least_one):
                    break
                batches.append(batch)
                room -= len(batch)
        return b"".join(batches)

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        return run(self.search_timestamp(timestamp))

    def offset_of_max_timestamp(self) -> tuple[int, int] | None:
        return run(self.search_max_timestamp())

    def search_timestamp(self, timestamp: int) -> Search:
        """`offset_for_timestamp` in slices: times have no index."""
        for rows in self._topic.timestamps(self.index):
            for row in rows:
                if row[1] >= timestamp:
                    return row
            yield
        return None

    def search_max_timestamp(self) -> Search:
        """`offset_of_max_timestamp` in slices."""
        found: tuple[int, int] | None = None
        for rows in self._topic.timestamps(self.index):
            newest = max(rows, key=_timestamp)
            if found is None or newest[1] > found[1]:
                found = newest
            yield
        return found

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return (LEADER_EPOCH, self.high_watermark) if epoch == LEADER_EPOCH else (-1, -1)

    def delete_records(self, before_offset: int) -> int | ErrorCode:
        """Refuse: rows are removed by compaction or retention only."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION


def run(search: Search) -> tuple[int, int] | None:
    while True:
        try:
            next(search)
        except StopIteration as end:
            found: tuple[int, int] | None = end.value
            return found


def _timestamp(row: tuple[int, int]) -> int:
    return row[1]


def _batch(row: StoredRow) -> bytes:
    record = Record(row.offset, row.timestamp_ms, row.key, row.value)
    return build_batch([record], leader_epoch=LEADER_EPOCH)
