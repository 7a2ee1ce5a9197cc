"""Record batches (format v2): read headers and checksums without copying, decode records on demand."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import google_crc32c

from broker.light_named_tuples import NamedTuple
from broker.protocol.compression import Codec, compress, decompress
from broker.protocol.varints import read_varint, varint
from broker.protocol.wire_types import DecodeError, EncodeError

Buffer: TypeAlias = "bytes | bytearray | memoryview"

HEADER_BYTES = 61
# Base offset and length, which the length of a batch does not include.
LOG_OVERHEAD_BYTES = 12
DEFAULT_MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LEADER_EPOCH_AT, _CRC_AT, _CHECKED_FROM, _MAX_TIMESTAMP_AT = 12, 17, 21, 35
_CODEC_MASK, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
_SMALLEST_RECORD_BYTES = 7
_MIN_INT32, _MAX_INT32 = -(2**31), 2**31 - 1
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


class BatchHeader(NamedTuple):
    """The fixed part of a batch, in the order of the wire and disk format."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return LOG_OVERHEAD_BYTES + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        """A `Codec`, or a number without a meaning."""
        return self.attributes & _CODEC_MASK

    @property
    def has_log_append_time(self) -> bool:
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Until when compaction keeps the batch (KIP-534)."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON else None


class Record(NamedTuple):
    """One record. `timestamp` is in ms since 1970; key and value may be null."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def is_transactional(records: bytes | memoryview) -> bool:
    """Whether the first batch is part of a transaction; a partition gets one batch per request."""
    return len(records) >= HEADER_BYTES and bool(records[_CHECKED_FROM + 1] & _TRANSACTIONAL)


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position`; DecodeError if it is cut short. Checks neither magic, length nor checksum."""
    try:
        return BatchHeader._make(_HEADER.unpack_from(buffer, position))
    except struct.error as error:
        raise DecodeError("a record batch is shorter than its header") from error


def batches(buffer: Buffer, *, partial_tail: bool = False) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch.

    Raises DecodeError if the lengths do not add up. With `partial_tail`, ignore an incomplete last batch, as in a Fetch.
    """
    position, size = 0, len(buffer)
    while position < size:
        if partial_tail and size - position < HEADER_BYTES:
            return
        header = parse_header(buffer, position)
        if header.size_bytes < HEADER_BYTES:
            raise DecodeError("a record batch has a length below the size of its header")
        if header.size_bytes > size - position:
            if partial_tail:
                return
            raise DecodeError("a record batch is cut short")
        yield position, header
        position += header.size_bytes


def check_crc(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the checksum of the batch at `position` is correct."""
    return _crc(buffer, position, header.size_bytes) == header.crc


def patch(buffer: bytearray, position: int, *, base_offset: int, leader_epoch: int) -> None:
    """Set base offset and leader epoch of the batch at `position`; the checksum does not cover them."""
    struct.pack_into(">q", buffer, position, base_offset)
    struct.pack_into(">i", buffer, position + _LEADER_EPOCH_AT, leader_epoch)


def set_log_append_time(buffer: bytearray, position: int, timestamp_ms: int) -> None:
    """Give all records of the batch at `position` the append time, and update the checksum."""
    header = parse_header(buffer, position)
    struct.pack_into(">h", buffer, position + _CHECKED_FROM, header.attributes | _LOG_APPEND_TIME)
    struct.pack_into(">q", buffer, position + _MAX_TIMESTAMP_AT, timestamp_ms)
    struct.pack_into(">I", buffer, position + _CRC_AT, _crc(buffer, position, header.size_bytes))


def _crc(buffer: Buffer, position: int, size_bytes: int) -> int:
    checked = memoryview(buffer)[position + _CHECKED_FROM : position + size_bytes]
    value: int = google_crc32c.value(checked.tobytes())
    return value


def decode_records(
    buffer: Buffer,
    position: int = 0,
    *,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    max_records: int = _MAX_INT32,
) -> list[Record]:
    """Decode the records of the batch at `position`, with absolute offsets. DecodeError if malformed; ignores the CRC."""
    header = parse_header(buffer, position)
    plain = plain_records(buffer, position, header, max_decompressed_bytes, max_records)
    try:
        return _decode(plain, header)
    except (IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"record: {error}") from error


def scan_records(
    buffer: Buffer,
    position: int = 0,
    *,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    max_records: int = _MAX_INT32,
) -> Iterator[tuple[int, int, bool]]:
    """Yield (offset, timestamp, whether it has a key) of each record, without building records.

    Raises DecodeError, possibly after some records, where `decode_records` does, and if offsets do not increase.
    """
    header = parse_header(buffer, position)
    plain = plain_records(buffer, position, header, max_decompressed_bytes, max_records)
    try:
        yield from _scan(plain, header)
    except (IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"record: {error}") from error


def plain_records(
    buffer: Buffer,
    position: int,
    header: BatchHeader,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    max_records: int = _MAX_INT32,
) -> bytes:
    """The decompressed records of the batch at `position`, which has this header. Raises DecodeError."""
    if header.record_count > max_records:
        raise DecodeError(f"a record batch has more than {max_records} records")
    return unpack(payload_of(buffer, position, header), header, max_decompressed_bytes)


def payload_of(buffer: Buffer, position: int, header: BatchHeader) -> bytes:
    """A copy of the records of the batch at `position`, compressed as they are. Raises DecodeError."""
    if header.magic != 2:
        raise DecodeError(f"record format {header.magic} is not supported")
    if not HEADER_BYTES <= header.size_bytes <= len(buffer) - position:
        raise DecodeError("a record batch has a wrong length")
    return bytes(memoryview(buffer)[position + HEADER_BYTES : position + header.size_bytes])


def check_payload(buffer: Buffer, position: int, header: BatchHeader, payload: bytes) -> bool:
    """As `check_crc`, for a payload that was copied already."""
    head = bytes(buffer[position + _CHECKED_FROM : position + HEADER_BYTES])
    return bool(google_crc32c.extend(google_crc32c.value(head), payload) == header.crc)


def unpack(payload: bytes, header: BatchHeader, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES) -> bytes:
    """The decompressed records of a payload. Raises DecodeError."""
    plain = decompress(header.codec, payload, max_decompressed_bytes)
    if not 0 <= header.record_count <= len(plain) // _SMALLEST_RECORD_BYTES:
        raise DecodeError("a record batch has more records than bytes")
    return plain


def _decode(data: bytes, header: BatchHeader) -> list[Record]:
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.has_log_append_time else None
    records = []
    position, size = 0, len(data)
    for _ in range(header.record_count):
        length, position = read_varint(data, position)
        end = position + length
        if length < 0 or end > size:
            raise DecodeError("a record has a wrong length")
        timestamp_delta, position = read_varint(data, position + 1)
        offset_delta, position = read_varint(data, position)
        key, position = _read_bytes(data, position, end)
        value, position = _read_bytes(data, position, end)
        count = data[position]
        if count == 0:
            headers: tuple[tuple[str, bytes | None], ...] = ()
            position += 1
        else:
            headers, position = read_headers(data, position, end)
        if position != end:
            raise DecodeError("a record has a wrong length")
        timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
        if not (_MIN_INT64 <= timestamp <= _MAX_INT64 and _MIN_INT32 <= offset_delta <= _MAX_INT32):
            raise DecodeError("a record's timestamp or offset is out of range")
        records.append(Record(base_offset + offset_delta, timestamp, key, value, headers))
    return records


def _scan(data: bytes, header: BatchHeader) -> Iterator[tuple[int, int, bool]]:
    base_offset, base_timestamp, last_delta = header.base_offset, header.base_timestamp, header.last_offset_delta
    append_time = header.max_timestamp if header.has_log_append_time else None
    before = -1
    position, size = 0, len(data)
    for _ in range(header.record_count):
        length, position = read_varint(data, position)
        end = position + length
        if length < 0 or end > size:
            raise DecodeError("a record has a wrong length")
        timestamp_delta, position = read_varint(data, position + 1)
        offset_delta, position = read_varint(data, position)
        key_length, position = read_varint(data, position)
        value_length, position = read_varint(data, position + max(0, key_length))
        position += max(0, value_length)
        if key_length < -1 or value_length < -1 or position >= end:
            raise DecodeError("a key or value does not fit into its record")
        if data[position] == 0:
            position += 1
        else:
            _, position = read_headers(data, position, end)
        if position != end:
            raise DecodeError("a record has a wrong length")
        timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
        if not (_MIN_INT64 <= timestamp <= _MAX_INT64 and before < offset_delta <= last_delta):
            raise DecodeError("a record's timestamp or offset is out of range")
        before = offset_delta
        yield base_offset + offset_delta, timestamp, key_length >= 0


def _read_bytes(data: bytes, position: int, limit: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        if length != -1:
            raise DecodeError("a key, value or header has a negative length")
        return None, position
    end = position + length
    if end > limit:
        raise DecodeError("a key, value or header is longer than its record")
    return data[position:end], end


def read_headers(data: bytes, position: int, limit: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    """The headers of a record, and the position behind them, which is at most `limit`."""
    count, position = read_varint(data, position)
    if not 0 <= count <= limit - position:
        raise DecodeError("a record has more headers than bytes")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(data, position, limit)
        if name is None:
            raise DecodeError("a header has no name")
        value, position = _read_bytes(data, position, limit)
        headers.append((name.decode(), value))
    return tuple(headers), position


def build_batch(
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    base_offset: int | None = None,
    last_offset: int | None = None,
    leader_epoch: int = -1,
    log_append_time_ms: int | None = None,
    delete_horizon_ms: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """Build a batch of records with increasing offsets. Gaps, as left by compaction, are preserved.

    `base_offset` and `last_offset` may lie outside the records; they are required if there are none.
    With `log_append_time_ms`, all records get that time. EncodeError if offsets or times are too far apart.
    """
    if base_offset is None:
        base_offset = records[0].offset
    if last_offset is None:
        last_offset = records[-1].offset
    base_timestamp = delete_horizon_ms
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else -1
    timestamps = [record.timestamp for record in records] or [-1]
    min_timestamp, max_timestamp = min(timestamps), max(timestamps)
    if (
        not _MIN_INT64 <= min_timestamp <= max_timestamp <= _MAX_INT64
        or base_timestamp - min_timestamp > -_MIN_INT64
        or max_timestamp - base_timestamp > _MAX_INT64
        or not 0 <= last_offset - base_offset <= _MAX_INT32
        or (records and records[-1].offset - base_offset > _MAX_INT32)
    ):
        raise EncodeError("records are too far apart for one batch")
    attributes = int(codec) | _TRANSACTIONAL * is_transactional | _CONTROL * is_control
    if delete_horizon_ms is not None:
        attributes |= _DELETE_HORIZON
    if log_append_time_ms is not None:
        attributes |= _LOG_APPEND_TIME
        max_timestamp = log_append_time_ms
    body = compress(codec, b"".join([_encode(record, base_offset, base_timestamp) for record in records]))
    fields = (last_offset - base_offset, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence)
    checked = struct.pack(">hiqqqhii", attributes, *fields, len(records)) + body
    crc = google_crc32c.value(checked)
    head = struct.pack(">qiibI", base_offset, _CHECKED_FROM - LOG_OVERHEAD_BYTES + len(checked), leader_epoch, 2, crc)
    return head + checked


def _encode(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    parts = [b"\0", varint(record.timestamp - base_timestamp), varint(record.offset - base_offset)]
    for value in (record.key, record.value):
        parts += (b"\x01",) if value is None else (varint(len(value)), value)
    parts.append(varint(len(record.headers)))
    for name, value in record.headers:
        encoded = name.encode()
        parts += varint(len(encoded)), encoded
        parts += (b"\x01",) if value is None else (varint(len(value)), value)
    body = b"".join(parts)
    return varint(len(body)) + body
