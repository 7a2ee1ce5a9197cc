"""Encode and decode messages with functions that are compiled per message and version at first use."""

from __future__ import annotations

import struct
from collections.abc import Sized
from typing import Any, TypeAlias, TypeVar

from broker.protocol.specialise import specialise_reader, specialise_structs, specialise_writer
from broker.protocol.wire_types import DecodeError, Encoded, EncodeError, Message

__all__ = ["DecodeError", "EncodeError", "Encoded", "Part", "decode", "encode", "encode_entries", "encode_parts"]

UNLIMITED = 2**63

M = TypeVar("M", bound=Message)
Part: TypeAlias = "bytes | memoryview | Sized"


def decode(cls: type[M], data: bytes, version: int, offset: int = 0, *, entries: int = UNLIMITED) -> M:
    """Read one message at `offset`, and ignore the bytes after it. Records are views of `data`.

    DecodeError if it is malformed, or if its arrays have more than `entries` entries in total.
    """
    reader = cls.readers.get(version) or specialise_reader(cls, version)
    try:
        message: M = reader(data, offset, entries)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"{cls.__name__} v{version}: {error}") from error
    return message


def encode(message: Message, version: int) -> bytes:
    """The message as bytes, without fields that the version lacks. EncodeError if a value does not fit."""
    written = _write(message, version)
    return written if type(written) is bytes else b"".join(written)


def encode_entries(message: Message, field: str, version: int) -> bytes:
    """Encode the entries of a top-level array of structs, to be added to an `Encoded`. EncodeError if a value does not fit."""
    return encode_structs(type(message), getattr(message, field), version)


def encode_structs(cls: type[Message], structs: list[Any], version: int) -> bytes:
    """Encode entries of an array anywhere in a message, to be added to an `Encoded`. EncodeError if a value does not fit."""
    if not structs:
        return b""
    element: Any = type(structs[0])
    try:
        return specialise_structs(cls, element, version)(structs)
    except (struct.error, AttributeError, TypeError, UnicodeEncodeError) as error:
        raise EncodeError(f"{cls.__name__} v{version}, {element.__name__}: {error}") from error


def encode_parts(message: Message, version: int) -> list[Part]:
    """Like `encode`, but as buffers to send in order: RECORDS values are passed through, the rest is joined."""
    written = _write(message, version)
    return [written] if type(written) is bytes else written


def _write(message: Message, version: int) -> Any:
    cls = type(message)
    writer = cls.writers.get(version) or specialise_writer(cls, version)
    try:
        return writer(message)
    except (struct.error, AttributeError, TypeError, UnicodeEncodeError) as error:
        raise EncodeError(f"{cls.__name__} v{version}: {error}") from error
