"""A JSON Schema for each kind of answer, made from the type of its rows."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kgctl.model.failure import RowError
from kgctl.model.plans import PLAN, SNAPSHOT, Plan, Snapshot
from kgctl.model.plans import VERSION as FILE_VERSION
from kgctl.render.machine import VERSION, list_fields

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NAMES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    RowError: "string",
    type(None): "null",
}

# The files that commands write and read, with what their key `kind` says.
FILES: dict[str, tuple[type, str]] = {"plan-file": (Plan, PLAN), "snapshot-file": (Snapshot, SNAPSHOT)}


def schema_of_file(name: str) -> dict[str, Any]:
    row, kind = FILES[name]
    found = _schema_of(row)
    found["properties"] |= {"kind": {"const": kind}, "version": {"const": FILE_VERSION}}
    return {"$schema": DIALECT, "title": name, **found}


def schema_of_answer(kind: str, row: type) -> dict[str, Any]:
    """The schema of the envelope with rows of this type."""
    error = _exactly(name={"type": "string"}, message={"type": "string"}, subject={"type": "object"})
    return {
        "$schema": DIALECT,
        "title": kind,
        **_exactly(
            version={"const": VERSION},
            kind={"const": kind},
            rows={"type": "array", "items": _schema_of(row)},
            errors={"type": "array", "items": error},
        ),
    }


def schema_of_any(rows: Mapping[str, type]) -> dict[str, Any]:
    """The schema of an answer of any of these kinds."""
    found = {kind: schema_of_answer(kind, row) for kind, row in rows.items()}
    definitions = {kind: {k: v for k, v in schema.items() if k != "$schema"} for kind, schema in found.items()}
    return {"$schema": DIALECT, "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in definitions], "$defs": definitions}


def _schema_of(declared: Any) -> dict[str, Any]:
    origin, arguments = get_origin(declared), get_args(declared)
    if declared in _NAMES:
        return {"type": _NAMES[declared]}
    if is_dataclass(declared) and isinstance(declared, type):
        lists = list_fields(declared)
        hints = get_type_hints(declared)
        return _exactly(**{name: _schema_of(_known(hint) if name in lists else hint) for name, hint in hints.items()})
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema_of(argument) for argument in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _schema_of(arguments[0])}
    if origin is Literal:
        return {"enum": list(arguments)}
    if isinstance(declared, type) and issubclass(declared, Enum):
        return {"enum": [member.value for member in declared]}
    assert origin is Mapping, declared
    return {"type": "object", "additionalProperties": _schema_of(arguments[1])}


def _known(hint: Any) -> Any:
    """A list that is not known is an empty one, not null."""
    (found,) = [one for one in get_args(hint) if get_origin(one) is tuple] or [hint]
    return found


def _exactly(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
