"""Rows for programs: JSON and YAML in a versioned envelope, CSV with a header. Keys are the fields of the rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from kgctl.model.failure import RowError
from kgctl.render.table import printable

VERSION = 1


def envelope(rows: Sequence[Any], kind: str) -> dict[str, Any]:
    return {"version": VERSION, "kind": kind, "rows": [plain(row) for row in rows]}


def as_json(rows: Sequence[Any], kind: str) -> str:
    """ASCII only: names can neither send escape sequences to a terminal nor break on its encoding."""
    return json.dumps(envelope(rows, kind), indent=2) + "\n"


def as_yaml(rows: Sequence[Any], kind: str) -> str:
    import yaml

    # Ten times faster; only some builds of PyYAML have it.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(envelope(rows, kind), Dumper=dumper, sort_keys=False, allow_unicode=False))


def as_csv(rows: Sequence[Any], row_type: type | None, *, escaped: bool = False) -> str:
    """Absent values are empty; lists are written as in tables, objects as JSON.

    `escaped` spells out control characters, so that a name cannot command the terminal.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if row_type is None:
        return ""
    names = [field.name for field in fields(row_type)]
    writer.writerow(names)
    for row in rows:
        values = [_flat(getattr(row, name)) for name in names]
        writer.writerow([printable(str(value)) if escaped and value is not None else value for value in values])
    return out.getvalue()


def plain(value: Any) -> Any:
    """Convert dataclasses to objects, tuples to arrays and errors to their names."""
    if isinstance(value, RowError):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return value


def _flat(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    is_object = is_dataclass(value) and type(value).__str__ is object.__str__
    if is_object or isinstance(value, Mapping):
        # Keys may be any text, so a plain separator would be ambiguous.
        return json.dumps(plain(value), separators=(",", ":"))
    return ";".join(map(str, value)) if isinstance(value, tuple | list) else value
