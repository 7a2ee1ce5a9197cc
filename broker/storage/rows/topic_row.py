"""One record of a row topic as a row of the store, protected by its own checksum."""

from __future__ import annotations

import struct
from typing import Protocol

import google_crc32c

from broker.light_named_tuples import NamedTuple
from broker.storage.errors import StoreDamageError
from broker.storage.store.values import Row

_crc = google_crc32c.value
_CRC_HEAD = struct.Struct(">iqqi?")


class RowLike(Protocol):
    """What `Log.append_rows` accepts."""

    @property
    def partition(self) -> int: ...
    @property
    def key(self) -> bytes: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def timestamp_ms(self) -> int: ...


class TopicRow(NamedTuple):
    """A record without its offset. A value of None is a tombstone."""

    partition: int
    key: bytes
    value: bytes | None
    timestamp_ms: int


class StoredRow(NamedTuple):
    """A record of one partition, with its offset."""

    offset: int
    key: bytes
    value: bytes | None
    timestamp_ms: int


def row_crc(partition: int, offset: int, key: bytes, value: bytes | None, timestamp_ms: int) -> int:
    """CRC-32C over all fields of a row."""
    head = _CRC_HEAD.pack(partition, offset, timestamp_ms, len(key), value is not None)
    crc: int = _crc(head + key if value is None else head + key + value)
    return crc


def check_crc(topic: str, row: Row) -> tuple[int, StoredRow]:
    """Return (partition, row) of (partition, offset, key, value, timestamp, crc); StoreDamageError if the CRC is wrong."""
    partition, offset, key, value, timestamp_ms, crc = row
    if not (
        isinstance(partition, int)
        and isinstance(offset, int)
        and isinstance(key, bytes)
        and (value is None or isinstance(value, bytes))
        and isinstance(timestamp_ms, int)
        and row_crc(partition, offset, key, value, timestamp_ms) == crc
    ):
        raise StoreDamageError(f"store.db: the row of {topic}-{partition!r} at offset {offset!r} fails its checksum")
    return partition, StoredRow(offset, key, value, timestamp_ms)
