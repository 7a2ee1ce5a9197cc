"""A partition of __consumer_offsets as clients read it: one batch per row, so the bytes of an offset never change."""

from __future__ import annotations

from broker.log.file_slice import FileSlice
from broker.log.offsets_rows import OffsetsRows, StoredRow
from broker.log.partition_log import Appended
from broker.log.segments import LEADER_EPOCH
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import Record, build_batch

ROWS_AT_ONCE = 256


class OffsetsPartition:
    """A PartitionLog over rows of the store."""

    leader_epoch = LEADER_EPOCH
    log_start_offset = 0

    def __init__(self, rows: OffsetsRows, index: int) -> None:
        self._rows = rows
        self.index = index

    @property
    def log_end_offset(self) -> int:
        return self._rows.next_offsets[self.index]

    @property
    def high_watermark(self) -> int:
        return self._rows.high_watermarks[self.index]

    @property
    def size_bytes(self) -> int:
        return self._rows.size_bytes(self.index)

    def append(self, records: memoryview | bytes, *, wall_ms: int) -> Appended | ErrorCode:
        """Clients may not write here."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> bytes | FileSlice | None:
        if not 0 <= offset <= self.log_end_offset:
            return None
        batches: list[bytes] = []
        room = max_bytes
        while offset < self.high_watermark:
            rows = self._rows.read(self.index, offset, self.high_watermark, ROWS_AT_ONCE)
            for row in rows:
                batch = _batch(row)
                if len(batch) > room and (batches or not at_least_one):
                    return b"".join(batches)
                batches.append(batch)
                room -= len(batch)
            if len(rows) < ROWS_AT_ONCE:
                break
            offset = rows[-1].offset + 1
        return b"".join(batches)

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        return self._rows.find_timestamp(self.index, timestamp, self.high_watermark)

    def offset_of_max_timestamp(self) -> tuple[int, int] | None:
        return self._rows.max_timestamp(self.index, self.high_watermark)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return (LEADER_EPOCH, self.high_watermark) if epoch == LEADER_EPOCH else (-1, -1)

    def delete_records(self, before_offset: int) -> int | ErrorCode:
        """The coordinator's records go by compaction alone."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION


def _batch(row: StoredRow) -> bytes:
    record = Record(row.offset, row.timestamp_ms, row.key, row.value)
    return build_batch([record], leader_epoch=LEADER_EPOCH)
