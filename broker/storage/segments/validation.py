"""Validation of a produced record batch, without decompressing it (except on compacted topics)."""

from __future__ import annotations

from broker.protocol.compression import Codec
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import HEADER_BYTES, BatchHeader, check_crc, parse_header
from broker.protocol.wire_types import DecodeError
from broker.storage.segments.bounded_records import scanned
from broker.storage.topic_configs import Policy

NO_TIMESTAMP = -1
OFFSET_AND_LENGTH_BYTES = 12
UP_TO_MAGIC_BYTES = 17
SMALLEST_LENGTH = 14  # of a batch in the oldest format
NEWEST_MAGIC = 2


def check_batch(records: bytes | memoryview, policy: Policy, wall_ms: int) -> BatchHeader | ErrorCode:
    """Return the header of the one batch that `records` must be, or the error to answer with.

    The batch may be shorter than `records`: like Kafka, ignore an incomplete second batch.
    """
    magic = _whole_batch(records, 0)
    if isinstance(magic, ErrorCode):
        return magic
    if magic != NEWEST_MAGIC:
        return ErrorCode.INVALID_RECORD
    if int.from_bytes(records[8:OFFSET_AND_LENGTH_BYTES], "big") < HEADER_BYTES - OFFSET_AND_LENGTH_BYTES:
        return ErrorCode.CORRUPT_MESSAGE
    header = parse_header(records)
    size = header.size_bytes
    if size < len(records):
        second = _whole_batch(records, size)
        if second is not None:
            return second if isinstance(second, ErrorCode) else ErrorCode.INVALID_RECORD
    if header.base_offset != 0:
        return ErrorCode.INVALID_RECORD
    if size > policy.max_message_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    if not check_crc(records, 0, header):
        return ErrorCode.CORRUPT_MESSAGE
    if size > policy.segment_bytes:
        return ErrorCode.RECORD_LIST_TOO_LARGE
    return _check_fields(records, header, policy, wall_ms)


def _whole_batch(records: bytes | memoryview, position: int) -> int | ErrorCode | None:
    """The magic of the batch at `position`; None if the batch is incomplete."""
    left = len(records) - position
    if left < OFFSET_AND_LENGTH_BYTES:
        return None
    length = int.from_bytes(records[position + 8 : position + OFFSET_AND_LENGTH_BYTES], "big", signed=True)
    if length < SMALLEST_LENGTH:
        return ErrorCode.CORRUPT_MESSAGE
    if left < UP_TO_MAGIC_BYTES:
        return None
    magic = records[position + 16]
    if magic > NEWEST_MAGIC:
        return ErrorCode.CORRUPT_MESSAGE
    return magic if length <= left - OFFSET_AND_LENGTH_BYTES else None


def _check_fields(
    records: bytes | memoryview, header: BatchHeader, policy: Policy, wall_ms: int
) -> BatchHeader | ErrorCode:
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        return ErrorCode.INVALID_RECORD
    if header.is_control or header.codec > Codec.ZSTD:
        return ErrorCode.INVALID_RECORD
    if header.producer_id >= 0 and header.base_sequence < 0:
        return ErrorCode.INVALID_RECORD
    if policy.log_append_time or header.max_timestamp == NO_TIMESTAMP:
        if header.has_log_append_time:
            return ErrorCode.INVALID_TIMESTAMP
    else:
        earliest, latest = wall_ms - policy.timestamp_before_max_ms, wall_ms + policy.timestamp_after_max_ms
        if header.max_timestamp > latest or header.base_timestamp < earliest:
            return ErrorCode.INVALID_TIMESTAMP
    if policy.compact and not _all_have_keys(records):
        return ErrorCode.INVALID_RECORD
    return header


def _all_have_keys(records: bytes | memoryview) -> bool:
    """Compaction keeps the last record of each key, so every record needs one."""
    try:
        return all(has_key for _, _, has_key in scanned(records))
    except DecodeError:
        return False
