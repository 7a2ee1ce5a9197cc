"""JSON text as bytes that name a schema of a registry."""

from __future__ import annotations

from kgctl.client.schema_registry.codec import codec_of
from kgctl.client.schema_registry.errors import BadSchema
from kgctl.client.schema_registry.framing import prefix
from kgctl.client.schema_registry.kinds import TITLES, Format
from kgctl.client.schema_registry.registry import Registry


class Encoder:
    """Encodes with the schema of an id, or with the newest one of a subject when it is made."""

    def __init__(self, registry: Registry, schema: int | str, wanted: Format) -> None:
        if isinstance(schema, int):
            found, self._id = registry.by_id(schema), schema
            place = f"schema {schema}"
        else:
            found = registry.latest(schema)
            assert found.id is not None
            self._id = found.id
            place = f"the newest schema of {schema!r}"
        self._codec = codec_of(registry, found, self._id)
        if wanted not in (Format.AUTO, self._codec.kind):
            raise BadSchema(f"{place} (id {self._id}) is {TITLES[self._codec.kind]}, not {TITLES[wanted]}")
        self._prefix = prefix(self._id)

    def encode(self, text: bytes) -> bytes:
        """Raises Mismatch."""
        return self._prefix + self._codec.encode(text)

    @property
    def schema_id(self) -> int:
        return self._id
