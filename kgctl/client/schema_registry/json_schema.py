"""JSON Schema: the bytes are JSON already. What is written is checked against the schema, what is read is shown as it is."""

from __future__ import annotations

import json
from typing import Any

from kgctl.client.schema_registry.errors import BadSchema, Mismatch
from kgctl.client.schema_registry.kinds import Format
from kgctl.client.schema_registry.registry import Registry, Schema, required


def make(registry: Registry, schema: Schema, asked: int | str) -> JsonSchema:
    return JsonSchema(registry, schema, asked)


class JsonSchema:
    """The schema is read when something is written."""

    kind = Format.JSON_SCHEMA

    def __init__(self, registry: Registry, schema: Schema, asked: int | str) -> None:
        self._registry, self._schema, self._asked = registry, schema, asked
        self._validator: Any = None

    def decode(self, body: bytes, path: bytes | None) -> bytes:
        found = _loaded(body)
        if b"\n" in body or b"\r" in body:
            return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
        return body.strip()

    def encode(self, text: bytes) -> bytes:
        given = _loaded(text)
        if self._validator is None:
            self._validator = self._made_validator()
        error = required("jsonschema.exceptions").best_match(self._validator.iter_errors(given))
        if error is not None:
            raise Mismatch(f"{error.json_path}: {error.message}")
        return text.strip()

    def _made_validator(self) -> Any:
        library, referencing = required("jsonschema"), required("referencing")
        try:
            schema = json.loads(self._schema.text)
            kind = library.validators.validator_for(schema, default=library.Draft7Validator)
            kind.check_schema(schema)
            resources = referencing.Registry().with_resources(self._resources(self._schema, {}).items())
        except (ValueError, library.SchemaError) as error:
            raise BadSchema(f"schema {self._asked} is no valid JSON Schema: {error}") from None
        return kind(schema, registry=resources)

    def _resources(self, schema: Schema, found: dict[str, Any]) -> dict[str, Any]:
        """The schemas that it refers to, by the names that it uses for them."""
        specifications = required("referencing.jsonschema")
        for one in schema.references:
            if one.name not in found:
                other = self._registry.version(one.subject, one.version)
                found[one.name] = required("referencing").Resource.from_contents(
                    json.loads(other.text), default_specification=specifications.DRAFT7
                )
                self._resources(other, found)
        return found


def _loaded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Mismatch(f"it is not JSON: {error}") from None
