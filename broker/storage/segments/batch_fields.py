"""Fields of a record batch that the broker changes in place although the CRC covers them; batches without records."""

from __future__ import annotations

import google_crc32c

from broker.protocol.record_batch import build_batch
from broker.storage.partition_log import LEADER_EPOCH

MAX_OFFSETS_PER_BATCH = 2**31
CRC_AT, ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT, MAX_TIMESTAMP_AT = 17, 21, 23, 35
LOG_APPEND_TIME = 0x08


def empty_batch(base_offset: int, until: int) -> bytes:
    """A batch without records over these offsets, or the first 2^31 of them, like those that Kafka's compaction leaves."""
    last_offset = min(until, base_offset + MAX_OFFSETS_PER_BATCH) - 1
    return build_batch([], base_offset=base_offset, last_offset=last_offset, leader_epoch=LEADER_EPOCH)


def set_create_time(batch: bytearray) -> None:
    """Clear the LogAppendTime flag, which only brokers may set, and update the CRC."""
    attributes = int.from_bytes(batch[ATTRIBUTES_AT : ATTRIBUTES_AT + 2], "big") & ~LOG_APPEND_TIME
    batch[ATTRIBUTES_AT : ATTRIBUTES_AT + 2] = attributes.to_bytes(2, "big")
    _set_crc(batch)


def set_last_offset(batch: bytearray, base_offset: int, last_offset: int) -> None:
    """Make the batch end at `last_offset`, and update the CRC."""
    batch[LAST_OFFSET_DELTA_AT : LAST_OFFSET_DELTA_AT + 4] = (last_offset - base_offset).to_bytes(4, "big")
    _set_crc(batch)


def set_max_timestamp(batch: bytearray, timestamp_ms: int) -> None:
    batch[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8] = timestamp_ms.to_bytes(8, "big", signed=True)
    _set_crc(batch)


def _set_crc(batch: bytearray) -> None:
    batch[CRC_AT:ATTRIBUTES_AT] = google_crc32c.value(bytes(batch[ATTRIBUTES_AT:])).to_bytes(4, "big")
