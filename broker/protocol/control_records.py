"""Control records that end a transaction in a partition, byte for byte as Kafka writes them."""

from __future__ import annotations

import struct

import google_crc32c

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import Buffer, decode_records, parse_header
from broker.protocol.wire_types import DecodeError

_VERSION = 0
_ABORT, _COMMIT = 0, 1
_KEY = struct.Struct(">hh")  # version, type
_VALUE = struct.Struct(">hi")  # version, coordinator epoch
# A batch of one record without headers. Base offset, length, leader epoch, format and checksum:
_HEAD = struct.Struct(">qiibI")
# Attributes, delta of the last offset, two timestamps, producer id and epoch, sequence, count; then the record: its size, its key
# and its value, both with their sizes as varints. The empty bytes are attributes and deltas before, and no headers after.
_CHECKED = struct.Struct(">hiqqqhiiB3xBhhBhix")
_CHECKED_FROM = 9  # bytes of the head that count towards the length
_FORMAT, _TRANSACTIONAL_CONTROL, _NO_SEQUENCE = 2, 0x30, -1
_RECORD_SIZE, _KEY_SIZE, _VALUE_SIZE = (2 * size for size in (16, _KEY.size, _VALUE.size))


class Marker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool


def build_marker_batch(marker: Marker, *, timestamp_ms: int, base_offset: int = 0, leader_epoch: int = -1) -> bytes:
    """A control batch with one record, which takes one offset."""
    producer = (marker.producer_id, marker.producer_epoch, _NO_SEQUENCE)
    key = (_KEY_SIZE, _VERSION, _COMMIT if marker.is_commit else _ABORT)
    value = (_VALUE_SIZE, _VERSION, marker.coordinator_epoch)
    times = (timestamp_ms, timestamp_ms)
    checked = _CHECKED.pack(_TRANSACTIONAL_CONTROL, 0, *times, *producer, 1, _RECORD_SIZE, *key, *value)
    crc = google_crc32c.value(checked)
    return _HEAD.pack(base_offset, _CHECKED_FROM + len(checked), leader_epoch, _FORMAT, crc) + checked


def read_marker(buffer: Buffer, position: int = 0) -> Marker | None:
    """The marker in the control batch at `position`; None if it holds none. DecodeError if malformed.

    A batch that compaction has emptied holds none, and so do other kinds of control records. Versions above 0 start like
    version 0, as for Kafka.
    """
    header = parse_header(buffer, position)
    if not header.is_control or not header.record_count:
        return None
    record = decode_records(buffer, position, max_records=1)[0]
    try:
        version, kind = _KEY.unpack_from(record.key or b"")
        if version < 0:
            raise DecodeError(f"a control record has the version {version}")
        if kind not in (_ABORT, _COMMIT):
            return None
        version, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
    except struct.error as error:
        raise DecodeError("a control record is cut short") from error
    if version < 0:
        raise DecodeError(f"a control record has the version {version}")
    return Marker(header.producer_id, header.producer_epoch, coordinator_epoch, kind == _COMMIT)
