"""kafka-python and kio: they must read the same values from our bytes, and write the same bytes."""

from __future__ import annotations

import datetime
import io
import uuid
from collections.abc import Iterator
from dataclasses import fields as dataclass_fields
from functools import cache
from typing import Any

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
from kafka.protocol.schemas.fields.codecs.types import BitField
from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from broker.protocol.wire_types import ZERO_UUID, Message, Struct

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)


@cache
def in_kafka_python(cls: type[Message]) -> Any:
    modules = (kafka.protocol.admin, kafka.protocol.consumer, kafka.protocol.metadata, kafka.protocol.producer)
    return next((getattr(module, cls.__name__) for module in modules if hasattr(module, cls.__name__)), None)


@cache
def in_kio(cls: type[Message], version: int) -> Any:
    load = load_request_schema if cls.__name__.endswith("Request") else load_response_schema
    try:
        return load(cls.API_KEY, version)
    except (UnknownAPIKey, UnknownEntity):
        return None


def is_in_a_library(cls: type[Message], version: int) -> bool:
    return bool(in_kafka_python(cls) or in_kio(cls, version))


def assert_libraries_agree(message: Message, version: int, encoded: bytes) -> None:
    cls = type(message)
    if in_kafka_python(cls):
        assert_kafka_python_agrees(message, version, encoded)
    if in_kio(cls, version):
        assert_kio_agrees(message, version, encoded)


def assert_kafka_python_agrees(message: Message, version: int, encoded: bytes) -> None:
    theirs = in_kafka_python(type(message))[version].decode(encoded)
    assert_same_by_name(message, theirs, version)
    theirs._header = None  # a decoded message has no header, and its encoder requires the attribute
    assert bytes(theirs.encode(version=version)) == encoded


def assert_kio_agrees(message: Message, version: int, encoded: bytes) -> None:
    entity = in_kio(type(message), version)
    theirs, size = entity_reader(entity)(encoded, 0)
    assert size == len(encoded)
    assert_same_in_order(message, theirs, version)
    written = io.BytesIO()
    entity_writer(entity)(written, theirs)
    assert written.getvalue() == encoded


def assert_same_by_name(ours: Struct, theirs: Any, version: int) -> None:
    for name, value in values_of(ours, version):
        # kafka-python shortens the names of authorized operations.
        their_value = getattr(theirs, name if hasattr(theirs, name) else name.split("_", 1)[1])
        if isinstance(value, Struct):
            assert_same_by_name(value, their_value, version)
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            assert len(value) == len(their_value)
            for item, their_item in zip(value, their_value, strict=True):
                assert_same_by_name(item, their_item, version)
        else:
            assert same(value, their_value), name


def assert_same_in_order(ours: Struct, theirs: Any, version: int) -> None:
    """kio names some fields differently but keeps their order."""
    names = [field.name for field in dataclass_fields(theirs)]
    present = [field.name for field in type(ours).FIELDS if field.is_in(version)]
    assert len(names) == len(present)
    for name, their_name in zip(present, names, strict=True):
        value, their_value = getattr(ours, name), getattr(theirs, their_name)
        if isinstance(value, Struct):
            assert_same_in_order(value, their_value, version)
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            for item, their_item in zip(value, their_value, strict=True):
                assert_same_in_order(item, their_item, version)
        elif not is_omitted(ours, name, value):
            assert same(value, their_value), name


def values_of(ours: Struct, version: int) -> Iterator[tuple[str, Any]]:
    for field in type(ours).FIELDS:
        value = getattr(ours, field.name)
        if field.is_in(version) and not is_omitted(ours, field.name, value):
            yield field.name, value


def is_omitted(ours: Struct, name: str, value: Any) -> bool:
    """Whether a tagged struct is omitted: None here, a struct of defaults in the libraries."""
    field = next(field for field in type(ours).FIELDS if field.name == name)
    return value is None and field.tag is not None


def same(value: Any, theirs: Any) -> bool:
    # The libraries return None for the zero UUID and for authorized operations that were not requested.
    return value in (ZERO_UUID, -(2**31)) if theirs is None and value is not None else bool(value == plain(theirs))


def plain(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    if isinstance(value, set | frozenset):
        unsigned = BitField.to_32_bit_field(value)
        return unsigned - (1 << 32) if unsigned >> 31 else unsigned
    if isinstance(value, datetime.timedelta):
        return value // MILLISECOND
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // MILLISECOND
    return list(value) if isinstance(value, tuple) else value
