"""Which schema the bytes of a record name: a magic byte and an id in front, or a GUID in a header.

The wire format of Confluent's serializers: 0, a 4-byte id, for Protobuf the path to the message in its file as zigzag varints.
With 1 instead of 0, the 16 bytes of a GUID follow; so it is in the headers `__key_schema_id` and `__value_schema_id`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from uuid import UUID

from broker.light_named_tuples import NamedTuple
from kgctl.client.schema_registry.errors import Mismatch

KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"
_ID, _GUID = 0, 1
_ID_BYTES, _GUID_BYTES = 5, 17


class Framed(NamedTuple):
    """`schema` is an id or a GUID. `path` is what follows it, where a header has both; else the body begins with it."""

    schema: int | str
    body: bytes
    path: bytes | None = None


def split(data: bytes, headers: Sequence[tuple[str, bytes | None]], header: str) -> Framed | None:
    """None if the bytes name no schema."""
    for name, content in headers:
        if name == header and content is not None and len(content) >= _GUID_BYTES and content[0] == _GUID:
            return Framed(str(UUID(bytes=content[1:_GUID_BYTES])), data, content[_GUID_BYTES:])
    if len(data) >= _ID_BYTES and data[0] == _ID:
        return Framed(int(struct.unpack_from(">I", data, 1)[0]), data[_ID_BYTES:])
    if len(data) >= _GUID_BYTES and data[0] == _GUID:
        return Framed(str(UUID(bytes=data[1:_GUID_BYTES])), data[_GUID_BYTES:])
    return None


def prefix(schema_id: int) -> bytes:
    return struct.pack(">bI", _ID, schema_id)


# The path to the first message of a file.
FIRST_MESSAGE = b"\x00"


def read_path(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """The path to a message in its file, and what follows. Raises Mismatch."""
    count, at = _varint(data, 0)
    if count == 0:
        return (0,), data[at:]
    path = []
    for _ in range(count):
        index, at = _varint(data, at)
        path.append(index)
    if not path or min(path) < 0:
        raise Mismatch("it has no valid path to a Protobuf message")
    return tuple(path), data[at:]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise Mismatch("it has no valid path to a Protobuf message")
