"""Avro: fastavro reads and writes the bytes, JSON is the JSON encoding of the Avro specification.

Unions name their branch ({"string": "x"}), bytes are ISO 8859-1 text, logical types are shown as the type below them. NaN and
infinities are texts, as in Avro's Java library. For input, a value of a union of null and one other type needs no name.
"""

from __future__ import annotations

import io
import json
import math
from typing import Any

from kgctl.client.schema_registry.errors import BadSchema, Mismatch
from kgctl.client.schema_registry.kinds import Format
from kgctl.client.schema_registry.registry import Registry, Schema, required

_WHOLE = "KgctlWhole"
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_RANGES = {"int": 1 << 31, "long": 1 << 63}
_NAMED = ("record", "error", "enum", "fixed")
_PRIMITIVES: dict[str, type | tuple[type, ...]] = {
    "null": type(None),
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "bytes": bytes,
    "array": list,
    "map": dict,
}


def make(registry: Registry, schema: Schema, asked: int | str) -> Avro:
    named: dict[str, Any] = {}
    try:
        _parse_references(registry, schema, named, set())
        # fastavro keeps the named types of records only. A record is written as its fields are, so one around the schema
        # changes no byte.
        whole = {"type": "record", "name": _WHOLE, "fields": [{"name": "value", "type": _loaded(schema)}]}
        parsed = required("fastavro.schema").parse_schema(whole, named_schemas=named)
    except RecursionError:
        raise BadSchema(f"schema {asked} refers to itself") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadSchema(f"schema {asked} is no valid Avro schema: {error}") from None
    except required("fastavro.schema").SchemaParseException as error:
        raise BadSchema(f"schema {asked} is no valid Avro schema: {error}") from None
    return Avro(parsed, named)


def _parse_references(registry: Registry, schema: Schema, named: dict[str, Any], seen: set[tuple[str, int]]) -> None:
    """Parse the schemas that this one refers to, each once and after its own references, so that `named` has their types."""
    for one in schema.references:
        if (one.subject, one.version) not in seen:
            seen.add((one.subject, one.version))
            other = registry.version(one.subject, one.version)
            _parse_references(registry, other, named, seen)
            required("fastavro.schema").parse_schema(_loaded(other), named_schemas=named)


def _loaded(schema: Schema) -> Any:
    return _without_logical_types(json.loads(schema.text))


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _without_logical_types(part) for name, part in schema.items() if name != "logicalType"}
    return [_without_logical_types(part) for part in schema] if isinstance(schema, list) else schema


class Avro:
    """`whole` is a record around the schema. `named` has the records, enums and fixed types by their full names."""

    kind = Format.AVRO

    def __init__(self, whole: Any, named: dict[str, Any]) -> None:
        self._whole, self._named = whole, named
        self._schema = whole["fields"][0]["type"]
        self._library = required("fastavro")

    def decode(self, body: bytes, path: bytes | None) -> bytes:
        source = io.BytesIO(body)
        try:
            found = self._library.schemaless_reader(source, self._whole, None, return_named_type=True)["value"]
        except Exception as error:  # noqa: BLE001  (damaged bytes raise whatever they hit)
            raise Mismatch(f"it does not fit the schema: {_reason(error)}") from None
        rest = len(body) - source.tell()
        if rest:
            raise Mismatch(f"it does not fit the schema: {rest} bytes are left over")
        return json.dumps(self._shown(found, self._schema), ensure_ascii=False, separators=(",", ":")).encode()

    def encode(self, text: bytes) -> bytes:
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Mismatch(f"it is not JSON: {error}") from None
        out = io.BytesIO()
        try:
            self._library.schemaless_writer(out, self._whole, {"value": self._taken(given, self._schema, "$")})
        except Mismatch:
            raise
        except Exception as error:  # noqa: BLE001  (as above)
            raise Mismatch(f"it does not fit the schema: {_reason(error)}") from None
        return out.getvalue()

    # --- to JSON ---

    def _shown(self, value: Any, schema: Any) -> Any:
        if isinstance(schema, list):
            return self._shown_branch(value, schema)
        schema = self._resolved(schema)
        kind = _kind(schema)
        if kind in ("record", "error"):
            value = value[1] if isinstance(value, tuple) else value
            return {one["name"]: self._shown(value[one["name"]], one["type"]) for one in schema["fields"]}
        if kind in ("enum", "fixed") and isinstance(value, tuple):
            value = value[1]
        if kind == "array":
            return [self._shown(one, schema["items"]) for one in value]
        if kind == "map":
            return {name: self._shown(one, schema["values"]) for name, one in value.items()}
        if isinstance(value, bytes):
            return value.decode("iso-8859-1")
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value

    def _shown_branch(self, value: Any, union: list[Any]) -> Any:
        if value is None:
            return None
        name = value[0] if isinstance(value, tuple) else None
        for branch in union:
            schema = self._resolved(branch)
            kind = _kind(schema)
            if (name == schema["name"]) if kind in _NAMED else name is None and _fits(value, kind):
                return {_label(schema): self._shown(value, schema)}
        raise Mismatch("a value fits no branch of its union")

    # --- from JSON ---

    def _taken(self, given: Any, schema: Any, place: str) -> Any:
        if isinstance(schema, list):
            return self._taken_branch(given, schema, place)
        schema = self._resolved(schema)
        kind = _kind(schema)
        if kind in ("record", "error"):
            return self._taken_record(given, schema, place)
        if kind == "array" and isinstance(given, list):
            return [self._taken(one, schema["items"], f"{place}[{index}]") for index, one in enumerate(given)]
        if kind == "map" and isinstance(given, dict):
            return {name: self._taken(one, schema["values"], f"{place}.{name}") for name, one in given.items()}
        if kind in ("bytes", "fixed") and isinstance(given, str):
            return _latin(given, place, schema["size"] if kind == "fixed" else None)
        if kind in ("float", "double"):
            if isinstance(given, str) and given in _NUMBERS:
                return _NUMBERS[given]
            if isinstance(given, int | float) and not isinstance(given, bool):
                return float(given)
        if kind == "enum" and isinstance(given, str) and given in schema["symbols"]:
            return given
        if kind in ("null", "boolean", "int", "long", "string") and _fits(given, kind):
            return given
        raise Mismatch(f"{place} is no {_label(schema)}{' symbol' if kind == 'enum' else ''}")

    def _taken_record(self, given: Any, schema: Any, place: str) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise Mismatch(f"{place} is no record {_label(schema)}: write a JSON object")
        fields = {one["name"]: one for one in schema["fields"]}
        for name in given:
            if name not in fields:
                raise Mismatch(f"{place}.{name}: {_label(schema)} has no such field")
        missing = [name for name, one in fields.items() if name not in given and "default" not in one]
        if missing:
            raise Mismatch(f"{place}.{missing[0]} is missing and has no default")
        return {name: self._taken(one, fields[name]["type"], f"{place}.{name}") for name, one in given.items()}

    def _taken_branch(self, given: Any, union: list[Any], place: str) -> Any:
        schemas = {_label(schema): schema for schema in map(self._resolved, union)}
        if given is None and "null" in schemas:
            return None
        if isinstance(given, dict) and len(given) == 1:
            ((label, value),) = given.items()
            if label in schemas and label != "null":
                return label, self._taken(value, schemas[label], f"{place}.{label}")
        others = [label for label in schemas if label != "null"]
        if len(others) == 1:
            return others[0], self._taken(given, schemas[others[0]], place)
        raise Mismatch(f"{place} names no branch of its union: write {{TYPE: VALUE}} with one of {', '.join(schemas)}")

    def _resolved(self, schema: Any) -> Any:
        """A reference by name as the type that it names."""
        return self._named.get(schema, schema) if isinstance(schema, str) else schema


def _kind(schema: Any) -> str:
    found: str = schema if isinstance(schema, str) else schema["type"]
    return found


def _label(schema: Any) -> str:
    """What the JSON encoding calls a branch."""
    kind = _kind(schema)
    return str(schema["name"]) if kind in _NAMED else kind


def _fits(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    if kind in _RANGES and isinstance(value, int):
        return -_RANGES[kind] <= value < _RANGES[kind]
    return isinstance(value, _PRIMITIVES[kind])


def _latin(text: str, place: str, size: int | None) -> bytes:
    try:
        data = text.encode("iso-8859-1")
    except UnicodeEncodeError:
        raise Mismatch(f"{place} has characters above U+00FF, which no byte has") from None
    if size is not None and len(data) != size:
        raise Mismatch(f"{place} has {len(data)} bytes instead of {size}")
    return data


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
