"""One partition of a row topic, as clients read it: each row is one batch, so the bytes of an offset never change."""

from __future__ import annotations

from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import Record, build_batch
from broker.storage.files import FileSlice
from broker.storage.partition_log import LEADER_EPOCH, Appended
from broker.storage.rows.row_topic import RowTopic
from broker.storage.rows.topic_row import StoredRow

READ_ROWS = 256


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
    def size_bytes(self) -> int:
        return self._topic.size_bytes(self.index)

    def append(self, records: memoryview | bytes, *, wall_ms: int) -> Appended | ErrorCode:
        """Refuse: only the broker writes, through `Log.append_rows`."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> bytes | FileSlice | None:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return None
        batches: list[bytes] = []
        room = max_bytes
        while offset < self.high_watermark:
            rows = self._topic.read(self.index, offset, READ_ROWS)
            for row in rows:
                batch = _batch(row)
                if len(batch) > room and (batches or not at_least_one):
                    return b"".join(batches)
                batches.append(batch)
                room -= len(batch)
            if len(rows) < READ_ROWS:
                break
            offset = rows[-1].offset + 1
        return b"".join(batches)

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        return self._topic.find_timestamp(self.index, timestamp)

    def offset_of_max_timestamp(self) -> tuple[int, int] | None:
        return self._topic.find_max_timestamp(self.index)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return (LEADER_EPOCH, self.high_watermark) if epoch == LEADER_EPOCH else (-1, -1)

    def delete_records(self, before_offset: int) -> int | ErrorCode:
        """Refuse: rows are removed by compaction or retention only."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION


def _batch(row: StoredRow) -> bytes:
    record = Record(row.offset, row.timestamp_ms, row.key, row.value)
    return build_batch([record], leader_epoch=LEADER_EPOCH)
