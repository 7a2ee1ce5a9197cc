"""Variable-length integers and the tagged fields that nobody asked for."""

from __future__ import annotations

from broker.protocol.wire_types import DecodeError


def uvarint(value: int) -> bytes:
    """An unsigned varint, as lengths and tags have it."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """(value, position after it); at most five bytes and 32 bits."""
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


def skip_tagged_fields(data: bytes, position: int, count: int) -> int:
    """The position after `count` tagged fields."""
    for _ in range(count):
        _, position = read_uvarint(data, position)
        position = skip_tagged_value(data, position)
    return position


def skip_tagged_value(data: bytes, position: int) -> int:
    """The position after one tagged field whose number was read already."""
    length, position = read_uvarint(data, position)
    if length > len(data) - position:
        raise DecodeError("a tagged field is cut short")
    return position + length
