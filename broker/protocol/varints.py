"""Variable-length integers, and skipping of unknown tagged fields."""

from __future__ import annotations

from broker.protocol.wire_types import DecodeError

_ONE_BYTE = [bytes([n]) for n in range(128)]


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint, used for lengths and tags."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """(value, position after it) of an unsigned varint of at most five bytes and 32 bits."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise DecodeError("a varint is longer than five bytes")
    if value > 0xFFFFFFFF:
        raise DecodeError("a varint has more than 32 bits")
    return value, position


def varint(value: int) -> bytes:
    """Encode a signed (zigzag) varint, used in records."""
    folded = (value << 1) ^ (value >> 63)
    return _ONE_BYTE[folded] if folded < 128 else uvarint(folded)


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """(value, position after it) of a signed varint of at most ten bytes and 64 bits."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    folded, shift = byte & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        folded |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise DecodeError("a varint is longer than ten bytes")
    if folded >> 64:
        raise DecodeError("a varint has more than 64 bits")
    return (folded >> 1) ^ -(folded & 1), position


def skip_tagged_fields(data: bytes, position: int, count: int) -> int:
    """The position after `count` tagged fields."""
    for _ in range(count):
        _, position = read_uvarint(data, position)
        position = skip_tagged_value(data, position)
    return position


def skip_tagged_value(data: bytes, position: int) -> int:
    """The position after the value of one tagged field."""
    length, position = read_uvarint(data, position)
    if length > len(data) - position:
        raise DecodeError("a tagged field is cut short")
    return position + length
