"""Compression codecs of record batches, with a limit on the decompressed size."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any

from broker.protocol.wire_types import DecodeError


class Codec(IntEnum):
    """The value is the codec number in the attributes of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# Java's snappy library (xerial) adds its own header and splits the input into blocks; some clients write raw snappy.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024

# Version 1, independent blocks of at most 64 KiB, no checksums, as Kafka writes them. Kafka cannot read linked blocks.
_LZ4_HEADER = bytes.fromhex("04224d18604082")
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 0x80000000

_FIRST_GUESS_BYTES = 64 * 1024


def compress(codec: Codec, plain: bytes, level: int | None = None) -> bytes:
    """Compress in the form that Kafka clients expect. gzip and zstd have levels; -1 of gzip is its default."""
    if codec is Codec.NONE:
        return plain
    if codec is Codec.SNAPPY:
        return _compress_snappy(plain)
    if codec is Codec.LZ4:
        return _compress_lz4(plain)
    import cramjam

    if codec is Codec.GZIP:
        return bytes(cramjam.gzip.compress(plain, level=6 if level is None or level < 0 else level))
    return bytes(cramjam.zstd.compress(plain, level=3 if level is None else level))


def decompress(codec: int, packed: bytes, max_bytes: int) -> bytes:
    """Decompress. DecodeError if the codec is unknown, the data is damaged, or the result exceeds `max_bytes`."""
    if codec == Codec.NONE:
        return packed
    if codec == Codec.SNAPPY:
        return _decompress_snappy(packed, max_bytes)
    import cramjam

    if codec == Codec.GZIP:
        return _decompress_into(cramjam.gzip, packed, max_bytes)
    if codec == Codec.LZ4:
        return _decompress_into(cramjam.lz4, packed, max_bytes)
    if codec == Codec.ZSTD:
        return _decompress_into(cramjam.zstd, packed, max_bytes)
    raise DecodeError(f"unknown compression codec {codec}")


def _decompress_into(module: Any, packed: bytes, max_bytes: int) -> bytes:
    """These formats do not declare the decompressed size: try larger buffers, up to the limit."""
    import cramjam

    size = min(max_bytes, max(_FIRST_GUESS_BYTES, 4 * len(packed)))
    while True:
        plain = bytearray(size)
        try:
            written = module.decompress_into(packed, plain)
        except cramjam.DecompressionError as error:
            if size >= max_bytes:
                raise DecodeError(f"compressed records are damaged or exceed {max_bytes} bytes: {error}") from error
            size = min(max_bytes, 4 * size)
        else:
            return bytes(memoryview(plain)[:written])


def _compress_snappy(plain: bytes) -> bytes:
    import cramjam

    out = [_XERIAL_HEADER]
    for start in range(0, len(plain), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(plain[start : start + _XERIAL_BLOCK_BYTES]))
        out += struct.pack(">i", len(block)), block
    return b"".join(out)


def _decompress_snappy(packed: bytes, max_bytes: int) -> bytes:
    if not packed.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(packed, max_bytes)
    blocks = []
    position = len(_XERIAL_HEADER)
    while position < len(packed):
        if position + 4 > len(packed):
            raise DecodeError("a snappy block has no length")
        (length,) = struct.unpack_from(">i", packed, position)
        position += 4
        if not 0 <= length <= len(packed) - position:
            raise DecodeError("a snappy block has a wrong length")
        block = _decompress_snappy_block(packed[position : position + length], max_bytes)
        blocks.append(block)
        max_bytes -= len(block)
        position += length
    return b"".join(blocks)


def _decompress_snappy_block(packed: bytes, max_bytes: int) -> bytes:
    import cramjam

    try:
        if not packed or cramjam.snappy.decompress_raw_len(packed) > max_bytes:
            raise DecodeError("a snappy block is empty or grows too large")
        return bytes(cramjam.snappy.decompress_raw(packed))
    except cramjam.DecompressionError as error:
        raise DecodeError(f"compressed records are damaged: {error}") from error


def _compress_lz4(plain: bytes) -> bytes:
    import cramjam

    out = [_LZ4_HEADER]
    for start in range(0, len(plain), _LZ4_BLOCK_BYTES):
        block = plain[start : start + _LZ4_BLOCK_BYTES]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            out += struct.pack("<I", len(packed)), packed
        else:
            out += struct.pack("<I", len(block) | _LZ4_STORED), block
    out.append(bytes(4))
    return b"".join(out)
