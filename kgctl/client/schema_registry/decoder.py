"""Records that name schemas, as records of JSON text."""

from __future__ import annotations

from broker.protocol.record_batch import Record
from kgctl.client.net.errors import KgctlError
from kgctl.client.schema_registry.codec import Codec, codec_of
from kgctl.client.schema_registry.errors import BadSchema, Mismatch, SchemaNotFound
from kgctl.client.schema_registry.framing import KEY_HEADER, VALUE_HEADER, split
from kgctl.client.schema_registry.kinds import TITLES, Format
from kgctl.client.schema_registry.registry import Registry
from kgctl.model.json_text import JsonText
from kgctl.model.topic_partition import TopicPartition


class Undecodable(KgctlError):
    """A key or value that cannot be decoded; the message names partition and offset."""

    name = "UNDECODABLE"


class Decoder:
    """`decode` raises Undecodable for a record, RegistryFailed if the registry does not answer."""

    def __init__(self, registry: Registry, *, key: Format, value: Format) -> None:
        self._registry, self._key, self._value = registry, key, value
        self._codecs: dict[int | str, Codec | KgctlError] = {}

    def decode(self, partition: TopicPartition, record: Record) -> Record:
        """Nulls, and with `auto` bytes that name no schema, stay as they are."""
        part = "key"
        try:
            key = self._decoded(record.key, record, KEY_HEADER, self._key)
            part = "value"
            value = self._decoded(record.value, record, VALUE_HEADER, self._value)
        except (Mismatch, SchemaNotFound, BadSchema) as error:
            raise Undecodable(f"{partition}, offset {record.offset}: cannot decode the {part}: {error}") from None
        if key is record.key and value is record.value:
            return record
        return record._replace(key=key, value=value)

    def _decoded(self, data: bytes | None, record: Record, header: str, wanted: Format) -> bytes | None:
        if data is None or wanted is Format.TEXT:
            return data
        framed = split(data, record.headers, header)
        if framed is None:
            if wanted is Format.AUTO:
                return data
            raise Mismatch(f"it names no schema, so it is no {TITLES[wanted]}")
        codec = self._codec(framed.schema)
        if wanted not in (Format.AUTO, codec.kind):
            raise Mismatch(f"schema {framed.schema} is {TITLES[codec.kind]}, not {TITLES[wanted]}")
        try:
            return JsonText(codec.decode(framed.body, framed.path))
        except Mismatch as error:
            raise Mismatch(f"{error} (schema {framed.schema})") from None

    def _codec(self, schema: int | str) -> Codec:
        found = self._codecs.get(schema)
        if found is None:
            try:
                found = codec_of(self._registry, self._registry.by_id(schema), schema)
            except (SchemaNotFound, BadSchema) as error:
                found = error
            self._codecs[schema] = found
        if isinstance(found, KgctlError):
            raise found.with_traceback(None)
        return found
