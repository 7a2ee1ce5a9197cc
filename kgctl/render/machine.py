"""Rows for programs: JSON and YAML in a versioned envelope, JSON lines, CSV, names. Keys are the fields of the rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from kgctl.model.failure import RowError
from kgctl.render.table import printable

VERSION = 2

Keys = Sequence[str] | None
_SCALARS = frozenset((str, int, float, bool, type(None)))


def envelope(
    rows: Sequence[Any],
    kind: str,
    *,
    names: Sequence[str] = (),
    errors: Iterable[RowError | None] = (),
    keys: Keys = None,
) -> dict[str, Any]:
    """Rows and errors apart. A row with nothing but `names`, the fields that identify it, and an error is an error only.

    A row with an error and some of its values is in `rows`, with the name of the error, and its error in `errors`.
    """
    failed = [(row, error) for row in rows if (error := getattr(row, "error", None)) is not None]
    lost = {id(row) for row, _ in failed if _is_only_error(row, names)}
    return {
        "version": VERSION,
        "kind": kind,
        "rows": [_projected(row, keys) for row in rows if id(row) not in lost],
        "errors": [
            *(_error(error, {name: value for name in names if (value := getattr(row, name)) is not None})
              for row, error in failed),
            *(_error(error, {}) for error in errors if error is not None),
        ],
    }  # fmt: skip


def as_json(content: Mapping[str, Any]) -> str:
    """ASCII only: names can neither send escape sequences to a terminal nor break on its encoding."""
    return json.dumps(content, indent=2) + "\n"


def as_json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def as_yaml(content: Mapping[str, Any]) -> str:
    import yaml

    # Ten times faster; only some builds of PyYAML have it.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(content, Dumper=dumper, sort_keys=False, allow_unicode=False))


def as_csv(
    rows: Sequence[Any], row_type: type | None, *, keys: Keys = None, headers: bool = True, escaped: bool = False
) -> str:
    """Absent values are empty; lists are written as in tables, objects as JSON.

    `escaped` spells out control characters, so that a name cannot command the terminal.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if row_type is None:
        return ""
    names = [field.name for field in fields(row_type)] if keys is None else keys
    if headers:
        writer.writerow(names)
    for row in rows:
        values = [_flat(getattr(row, name)) for name in names]
        writer.writerow([printable(str(value)) if escaped and value is not None else value for value in values])
    return out.getvalue()


def as_names(rows: Iterable[Any], field: str, *, escaped: bool) -> str:
    """Each name once, on a line of its own: line ends inside a name are spelled out."""
    from kgctl.render.table import one_line

    names = dict.fromkeys(str(name) for row in rows if (name := getattr(row, field)) not in (None, ""))
    return "".join(one_line(name, escaped=escaped) + "\n" for name in names)


def plain(value: Any) -> Any:
    """Convert dataclasses to objects, tuples to arrays and errors to their names. A list that is not known is empty."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, RowError):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        lists = list_fields(type(value))
        return {
            name: found if type(found) in _SCALARS and name not in lists else plain(() if found is None else found)
            for name in _field_names(type(value))
            for found in [getattr(value, name)]
        }
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return value


@cache
def _field_names(row_type: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(row_type))


@cache
def list_fields(row_type: type) -> frozenset[str]:
    """The fields that hold a list. Annotations are texts in all modules with rows."""
    return frozenset(field.name for field in fields(row_type) if str(field.type).startswith("tuple["))


def _projected(row: Any, keys: Keys) -> dict[str, Any]:
    found: dict[str, Any] = plain(row)
    return found if keys is None else {key: found[key] for key in keys}


def _is_only_error(row: Any, names: Sequence[str]) -> bool:
    values = (getattr(row, field.name) for field in fields(row) if field.name != "error" and field.name not in names)
    return all(value is None or value == () for value in values)


def _error(error: RowError, subject: dict[str, Any]) -> dict[str, Any]:
    return {"name": error.name, "message": error.message, "subject": subject}


def _flat(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    is_object = is_dataclass(value) and type(value).__str__ is object.__str__
    if is_object or isinstance(value, Mapping):
        # Keys may be any text, so a plain separator would be ambiguous.
        return json.dumps(plain(value), separators=(",", ":"))
    return ";".join(map(str, value)) if isinstance(value, tuple | list) else value
