"""What each kind of schema offers, and how to get it."""

from __future__ import annotations

import importlib
from typing import Protocol

from kgctl.client.schema_registry.errors import BadSchema
from kgctl.client.schema_registry.kinds import OF_TYPE, Format
from kgctl.client.schema_registry.registry import Registry, Schema

_PACKAGE = "kgctl.client.schema_registry"
_MODULES = {Format.AVRO: "avro", Format.JSON_SCHEMA: "json_schema", Format.PROTOBUF: "protobuf"}


class Codec(Protocol):
    """Bytes of one schema to JSON text and back."""

    kind: Format

    def decode(self, body: bytes, path: bytes | None) -> bytes:
        """JSON text in one line. `path` is that of a Protobuf message, None if the body begins with it. Raises Mismatch."""

    def encode(self, text: bytes) -> bytes:
        """What follows the id of the schema. Raises Mismatch."""


def codec_of(registry: Registry, schema: Schema, asked: int | str) -> Codec:
    """`asked` is the id of the schema, or its GUID. Raises BadSchema."""
    kind = OF_TYPE.get(schema.type)
    if kind is None:
        raise BadSchema(f"schema {asked} is of an unknown type: {schema.type}")
    made: Codec = importlib.import_module(f"{_PACKAGE}.{_MODULES[kind]}").make(registry, schema, asked)
    return made
