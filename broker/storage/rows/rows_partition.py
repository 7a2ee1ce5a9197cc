"""A partition kept as rows of the store, as clients read it: one batch per row, so the bytes of an offset never change."""

from __future__ import annotations

import struct
from typing import NamedTuple, Protocol

import google_crc32c

from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import Record, build_batch
from broker.storage.errors import StoreDamageError
from broker.storage.partition_log import Appended
from broker.storage.segments.file_slice import FileSlice
from broker.storage.segments.segment import LEADER_EPOCH
from broker.storage.store.database import Row

ROWS_AT_ONCE = 256

_crc = google_crc32c.value
_CRC_HEAD = struct.Struct(">iqqi?")


class StoredRow(NamedTuple):
    offset: int
    key: bytes
    value: bytes | None
    timestamp_ms: int


class Rows(Protocol):
    """The rows of a topic: log start <= high watermark <= log end. Readers see what lies below the high watermark."""

    def log_start(self, partition: int) -> int: ...
    def log_end(self, partition: int) -> int: ...
    def high_watermark(self, partition: int) -> int: ...

    def size_bytes(self, partition: int) -> int:
        """Bytes of keys and values, without the framing that a reader sees."""

    def read(self, partition: int, offset: int, end_offset: int, limit: int) -> list[StoredRow]:
        """Up to `limit` rows with offset <= o < end_offset; some offsets may be missing. StoreDamageError: a row is damaged."""

    def find_timestamp(self, partition: int, timestamp: int, end_offset: int) -> tuple[int, int] | None:
        """(offset, timestamp) of the first row that is not older than `timestamp`."""

    def max_timestamp(self, partition: int, end_offset: int) -> tuple[int, int] | None:
        """(offset, timestamp) of the first row with the largest timestamp."""


class RowsPartition:
    """A PartitionLog over rows of the store."""

    leader_epoch = LEADER_EPOCH

    def __init__(self, rows: Rows, index: int) -> None:
        self._rows = rows
        self.index = index

    @property
    def log_start_offset(self) -> int:
        return self._rows.log_start(self.index)

    @property
    def log_end_offset(self) -> int:
        return self._rows.log_end(self.index)

    @property
    def high_watermark(self) -> int:
        return self._rows.high_watermark(self.index)

    @property
    def size_bytes(self) -> int:
        return self._rows.size_bytes(self.index)

    def append(self, records: memoryview | bytes, *, wall_ms: int) -> Appended | ErrorCode:
        """Clients may not write here."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> bytes | FileSlice | None:
        if not self.log_start_offset <= offset <= self.log_end_offset:
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
        """The coordinator's records go by compaction or retention alone."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION


def _batch(row: StoredRow) -> bytes:
    record = Record(row.offset, row.timestamp_ms, row.key, row.value)
    return build_batch([record], leader_epoch=LEADER_EPOCH)


def row_crc(partition: int, offset: int, key: bytes, value: bytes | None, timestamp: int) -> int:
    head = _CRC_HEAD.pack(partition, offset, timestamp, len(key), value is not None)
    crc: int = _crc(head + key if value is None else head + key + value)
    return crc


def check_crc(topic: str, row: Row) -> StoredRow:
    """The row (partition, offset, key, value, timestamp, crc) of the topic; StoreDamageError if it is not what was stored."""
    partition, offset, key, value, timestamp, crc = row
    if not (
        isinstance(partition, int)
        and isinstance(offset, int)
        and isinstance(key, bytes)
        and (value is None or isinstance(value, bytes))
        and isinstance(timestamp, int)
        and row_crc(partition, offset, key, value, timestamp) == crc
    ):
        raise StoreDamageError(f"store.db: the row of {topic}-{partition!r} at offset {offset!r} fails its checksum")
    return StoredRow(offset, key, value, timestamp)
