"""What the generators of readers and writers share: names, lines, fields of a version, minimum sizes."""

from __future__ import annotations

import struct
from typing import Any, Never

from broker.protocol.varints import read_uvarint, skip_tagged_fields, skip_tagged_value, uvarint
from broker.protocol.wire_types import (
    ARRAY,
    STRING_BYTES,
    DecodeError,
    Encoded,
    EncodeError,
    Field,
    Scalar,
    Sequence,
    StructMeta,
    WireType,
)


def _fail(reason: str) -> Never:
    raise DecodeError(reason)


def _too_long(name: str, text: bytes) -> Never:
    start = text[:20].decode(errors="ignore")
    raise EncodeError(f"{name} '{start}...' has {len(text)} bytes; a string has at most {STRING_BYTES}")


def _cut(text: bytes) -> bytes:
    return text[:STRING_BYTES].decode(errors="ignore").encode()


_NAMES = {
    "new": object.__new__,
    "uvarint": uvarint,
    "read_uvarint": read_uvarint,
    "skip_tagged_fields": skip_tagged_fields,
    "skip_tagged_value": skip_tagged_value,
    "fail": _fail,
    "too_long": _too_long,
    "cut": _cut,
    "pack": struct.pack,
    "unpack_from": struct.unpack_from,
    "join": b"".join,
    "Encoded": Encoded,
    "ONE_BYTE": [bytes([n]) for n in range(128)],
}


class Generator:
    """Source text under construction.

    `run` collects adjacent fixed-width values (struct code and expression) until `flush` emits one struct call for them.
    """

    def __init__(self, version: int, flexible_since: int) -> None:
        self.version = version
        self.flexible = version >= flexible_since
        self.names: dict[str, Any] = dict(_NAMES)
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.run: list[tuple[str, str]] = []
        self._arrays: dict[str, str] = {}

    def source(self, cls: StructMeta) -> str:
        raise NotImplementedError

    def line(self, text: str) -> None:
        self.lines.append(" " * self.depth + text)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def element(self, array: str) -> str:
        """A name for the elements of an array."""
        name = self.fresh("x")
        self._arrays[name] = self.label(array)
        return name

    def label(self, value: str) -> str:
        """The field that a value belongs to, as error messages call it."""
        owner, _, field = value.rpartition(".")
        return field if owner else self._arrays.get(value, value)

    def constant(self, stem: str, value: Any) -> str:
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def fields(self, cls: StructMeta) -> tuple[list[Field], list[Field]]:
        """The fields of this version: the untagged ones in wire order, and the tagged ones by tag."""
        present = [field for field in cls.FIELDS if field.is_in(self.version)]
        tagged = sorted((field for field in present if field.tag is not None), key=lambda field: field.tag or 0)
        return [field for field in present if field.tag is None], tagged

    def minimum(self, wire_type: WireType, nullable: bool = False) -> int:
        """The minimum size of a value in bytes. It bounds the count of an array before anything is allocated."""
        if isinstance(wire_type, Scalar):
            return wire_type.size
        if isinstance(wire_type, Sequence):
            return 1 if self.flexible else wire_type.prefix_size
        if isinstance(wire_type, ARRAY):
            return 1 if self.flexible else 4
        if nullable:
            return 1
        plain, _ = self.fields(wire_type)
        # Never 0: with empty elements, any count up to 2^31 would pass.
        return max(1, self.flexible + sum(self.minimum(field.type, field.is_nullable(self.version)) for field in plain))
