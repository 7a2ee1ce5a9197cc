"""What a client's record batch must be before it is appended, without looking into compressed records."""

from __future__ import annotations

from broker.log.topic_configs import Policy
from broker.protocol.compression import Codec
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    check_crc,
    decode_records,
    parse_header,
)
from broker.protocol.wire_types import DecodeError

NO_TIMESTAMP = -1


def check_batch(records: bytes | bytearray | memoryview, policy: Policy, wall_ms: int) -> BatchHeader | ErrorCode:
    """The header of the one batch that `records` must be, or the error to answer with."""
    size = len(records)
    if size < HEADER_BYTES:
        return ErrorCode.INVALID_RECORD if size == 0 else ErrorCode.CORRUPT_MESSAGE
    header = parse_header(records)
    if header.magic != 2:
        return ErrorCode.INVALID_RECORD
    if header.size_bytes < HEADER_BYTES:
        return ErrorCode.CORRUPT_MESSAGE
    if header.size_bytes != size or header.base_offset != 0:
        return ErrorCode.INVALID_RECORD
    if size > policy.max_message_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    if not check_crc(records, 0, header):
        return ErrorCode.CORRUPT_MESSAGE
    if size > policy.segment_bytes:
        return ErrorCode.RECORD_LIST_TOO_LARGE
    return _check_fields(records, header, policy, wall_ms)


def _check_fields(
    records: bytes | bytearray | memoryview, header: BatchHeader, policy: Policy, wall_ms: int
) -> BatchHeader | ErrorCode:
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        return ErrorCode.INVALID_RECORD
    if header.is_control or header.codec > Codec.ZSTD:
        return ErrorCode.INVALID_RECORD
    if header.producer_id >= 0 and header.base_sequence < 0:
        return ErrorCode.INVALID_RECORD
    if header.is_transactional:
        return ErrorCode.INVALID_TXN_STATE
    if header.has_log_append_time:
        return ErrorCode.INVALID_TIMESTAMP
    if not policy.log_append_time and header.max_timestamp != NO_TIMESTAMP:
        earliest, latest = wall_ms - policy.timestamp_before_max_ms, wall_ms + policy.timestamp_after_max_ms
        if header.max_timestamp > latest or header.base_timestamp < earliest:
            return ErrorCode.INVALID_TIMESTAMP
    if policy.compact and not _all_have_keys(records):
        return ErrorCode.INVALID_RECORD
    return header


def _all_have_keys(records: bytes | bytearray | memoryview) -> bool:
    """Compaction keeps the last record of each key, so a record without one has no place there."""
    try:
        return all(record.key is not None for record in decode_records(records))
    except DecodeError:
        return False
