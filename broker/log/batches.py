"""The header of a record batch (magic 2) as the log needs it: fields by position, CRC, patching."""

from __future__ import annotations

import struct

import google_crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size  # 61
LENGTH_OVERHEAD = 12  # base offset and length, which the length does not count
CRC_START = 21
WALK = struct.Struct(">qi11xi")  # base offset, length, last offset delta
OFFSET_AND_LENGTH = struct.Struct(">qi")
_CRC = struct.Struct(">I")

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20

crc32c = google_crc32c.value


def crc_holds(batch: bytes) -> bool:
    """Whether the CRC of one whole batch is right."""
    return bool(_CRC.unpack_from(batch, 17)[0] == crc32c(batch[CRC_START:]))
