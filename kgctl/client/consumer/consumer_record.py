"""A record as an application receives it, and the fast way from the bytes of a batch to a list of them."""

from __future__ import annotations

from typing import Any

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import BatchHeader, read_headers, unpack
from broker.protocol.varints import read_varint
from broker.protocol.wire_types import DecodeError

CREATE_TIME, LOG_APPEND_TIME = 0, 1


class ConsumerRecord(NamedTuple):
    """`timestamp_ms` counts from 1970; `timestamp_type` is CREATE_TIME (0: the producer's) or LOG_APPEND_TIME (1).

    Without a deserializer, key and value are bytes; null is None. `leader_epoch` is the epoch of the leader that appended
    the record, or None.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...] = ()
    leader_epoch: int | None = None


_new = tuple.__new__


def decode_batch(payload: bytes, header: BatchHeader, topic: str, partition: int, out: list[ConsumerRecord]) -> None:
    """Append the records of a batch with this header and payload to `out`. Raises DecodeError; ignores the checksum."""
    try:
        _decode(unpack(payload, header), header, topic, partition, out.append)
    except (IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"record: {error}") from error


def _decode(data: bytes, header: BatchHeader, topic: str, partition: int, append: Any) -> None:
    # One loop without calls: lengths and deltas of one or two bytes are read here, others by `read_varint`.
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    has_append_time = header.has_log_append_time
    timestamp, timestamp_type = header.max_timestamp, int(has_append_time)
    epoch = header.partition_leader_epoch if header.partition_leader_epoch >= 0 else None
    made, new, read, size = ConsumerRecord, _new, read_varint, len(data)
    at = 0
    key: bytes | None
    value: bytes | None
    for _ in range(header.record_count):
        first = data[at]
        if first < 0x80:
            length, at = first, at + 1
        elif (second := data[at + 1]) < 0x80:
            length, at = first & 0x7F | second << 7, at + 2
        else:
            length, at = read(data, at)
            length = (length << 1) ^ (length >> 63)
        end = at + (length >> 1)
        first = data[at + 1]
        if first < 0x80:
            delta, at = (first >> 1) ^ -(first & 1), at + 2
        elif (second := data[at + 2]) < 0x80:
            folded, at = first & 0x7F | second << 7, at + 3
            delta = (folded >> 1) ^ -(folded & 1)
        else:
            delta, at = read(data, at + 1)
        if not has_append_time:
            timestamp = base_timestamp + delta
        first = data[at]
        if first < 0x80:
            offset_delta, at = (first >> 1) ^ -(first & 1), at + 1
        elif (second := data[at + 1]) < 0x80:
            folded, at = first & 0x7F | second << 7, at + 2
            offset_delta = (folded >> 1) ^ -(folded & 1)
        else:
            offset_delta, at = read(data, at)
        first = data[at]
        if first == 1:
            key, at = None, at + 1
        else:
            if first < 0x80:
                folded, at = first, at + 1
            else:
                folded, at = read(data, at)
                folded = (folded << 1) ^ (folded >> 63)
            length |= folded
            start = at
            at += folded >> 1
            key = data[start:at]
        first = data[at]
        if first == 1:
            value, at = None, at + 1
        else:
            if first < 0x80:
                folded, at = first, at + 1
            elif (second := data[at + 1]) < 0x80:
                folded, at = first & 0x7F | second << 7, at + 2
            else:
                folded, at = read(data, at)
                folded = (folded << 1) ^ (folded >> 63)
            length |= folded
            start = at
            at += folded >> 1
            value = data[start:at]
        if length & 1:  # any of the lengths above is negative
            raise DecodeError("a record, key or value has a negative length")
        if data[at]:
            if end > size:
                raise DecodeError("a record has a wrong length")
            headers, at = read_headers(data, at, end)
        else:
            headers, at = (), at + 1
        if at != end:
            raise DecodeError("a record has a wrong length")
        append(
            new(
                made,
                (topic, partition, base_offset + offset_delta, timestamp, timestamp_type, key, value, headers, epoch),
            )
        )
