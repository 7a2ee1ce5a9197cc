"""Control records that end a transaction in a partition, byte for byte as Kafka writes them."""

from __future__ import annotations

import struct
from typing import NamedTuple

from broker.protocol.record_batch import Buffer, Record, build_batch, decode_records, parse_header
from broker.protocol.wire_types import DecodeError

_VERSION = 0
_ABORT, _COMMIT = 0, 1
_KEY = struct.Struct(">hh")  # version, type
_VALUE = struct.Struct(">hi")  # version, coordinator epoch


class Marker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool


def build_marker_batch(marker: Marker, *, timestamp_ms: int, base_offset: int = 0, leader_epoch: int = -1) -> bytes:
    """A control batch with one record, which takes one offset."""
    key = _KEY.pack(_VERSION, _COMMIT if marker.is_commit else _ABORT)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    return build_batch(
        [Record(base_offset, timestamp_ms, key, value)],
        leader_epoch=leader_epoch,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_transactional=True,
        is_control=True,
    )


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
