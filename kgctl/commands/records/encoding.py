"""JSON of input lines as bytes that name schemas of a registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import typer

from broker.light_dataclasses import dataclass, replace
from kgctl.client.producer.records import OutgoingRecord
from kgctl.client.schema_registry.encoder import Encoder
from kgctl.client.schema_registry.errors import Mismatch
from kgctl.client.schema_registry.kinds import Format
from kgctl.commands.records.input_lines import BadLine
from kgctl.commands.shared.settings import settings
from kgctl.model.json_text import JsonText

if TYPE_CHECKING:
    from kgctl.client.schema_registry.registry import Registry

# A format, and an id or a subject, as they were given.
Wanted: TypeAlias = "tuple[Format | None, str | None]"


@dataclass(frozen=True, slots=True)
class RecordEncoding:
    """`encoders` of the fields `key` and `value`; a field without one stays as it is."""

    encoders: Mapping[str, Encoder]

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self.encoders)

    def encoded(self, record: OutgoingRecord, line: int, *, is_marked: bool) -> OutgoingRecord:
        """`is_marked`: what is JSON is JsonText; other bytes are as they should be. Raises BadLine."""
        key = self._bytes("key", record.key, line, is_marked)
        value = self._bytes("value", record.value, line, is_marked)
        return replace(record, key=key, value=value)

    def _bytes(self, field: str, text: bytes | None, line: int, is_marked: bool) -> bytes | None:
        encoder = self.encoders.get(field)
        if encoder is None or text is None or (is_marked and not isinstance(text, JsonText)):
            return text
        try:
            return encoder.encode(text)
        except Mismatch as error:
            raise BadLine(line, f"cannot encode the {field} with schema {encoder.schema_id}: {error}") from None


def encoding_of(ctx: typer.Context, url: str | None, topic: str, value: Wanted, key: Wanted) -> RecordEncoding | None:
    """How to encode records; None without a registry. Asks the registry for the schemas. Raises KgctlErrors."""
    if url is None and not any((*value, *key)):
        return None
    from kgctl.client.schema_registry.registry import Registry

    registry = Registry(settings(ctx).registry(url))
    ctx.call_on_close(registry.close)
    encoders = {}
    if value[0] is not Format.TEXT:
        encoders["value"] = _encoder(registry, value, f"{topic}-value")
    if any(key) and key[0] is not Format.TEXT:
        encoders["key"] = _encoder(registry, key, f"{topic}-key")
    return RecordEncoding(encoders)


def _encoder(registry: Registry, wanted: Wanted, subject: str) -> Encoder:
    kind, schema = wanted
    named = schema or subject
    return Encoder(registry, int(named) if named.isascii() and named.isdecimal() else named, kind or Format.AUTO)
