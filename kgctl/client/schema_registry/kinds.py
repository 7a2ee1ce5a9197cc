"""Kinds of schemas, and what is asked for."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """`auto`: by the schema that the bytes or the subject name. `text`: no schema."""

    AUTO = "auto"
    AVRO = "avro"
    JSON_SCHEMA = "json-schema"
    PROTOBUF = "protobuf"
    TEXT = "text"


# schemaType in the REST API of the registry.
OF_TYPE = {"AVRO": Format.AVRO, "JSON": Format.JSON_SCHEMA, "PROTOBUF": Format.PROTOBUF}
TITLES = {Format.AVRO: "Avro", Format.JSON_SCHEMA: "JSON", Format.PROTOBUF: "Protobuf"}
