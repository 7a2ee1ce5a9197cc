"""Documents as JSON: written from frozen dataclasses, read back with a check of every value."""

from __future__ import annotations

import dataclasses
import json
import types
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from kgctl.client.net.errors import BadValue
from kgctl.model.items import ACTIONS as ITEM_ACTIONS
from kgctl.model.plans import ACTIONS, ENTRY, PLAN, SNAPSHOT, VERSION, Entry, Plan, Snapshot

T = TypeVar("T", Plan, Snapshot, Entry)
KINDS: dict[type, str] = {Plan: PLAN, Snapshot: SNAPSHOT, Entry: ENTRY}
MOST_BYTES = 1 << 30
_NAMES = {str: "text", int: "a whole number", bool: "true or false", type(None): "null"}


def as_bytes(document: Plan | Snapshot | Entry) -> bytes:
    """ASCII only, with a line break at the end."""
    return json.dumps(_plain(document), indent=1).encode() + b"\n"


def read(kind: type[T], content: bytes, where: str) -> T:
    """The document in these bytes. Raises BadValue with the place of the first value that is not valid."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise BadValue(f"{where} is not JSON") from None
    name = KINDS[kind]
    if not isinstance(found, dict) or found.get("kind") != name:
        other = found.get("kind") if isinstance(found, dict) else None
        what = f": it is a {other}" if isinstance(other, str) and other in KINDS.values() else ""
        raise BadValue(f"{where} is not a {name} file{what}")
    if found.get("version") != VERSION:
        raise BadValue(f"{where} has version {found.get('version')!r}; this kgctl reads version {VERSION}")
    if kind is Entry:
        # Entries of earlier releases have none.
        found.setdefault("items", [])
    try:
        document = _value(kind, found, "")
    except _Invalid as error:
        raise BadValue(f"{where} is not valid: {error}") from None
    assert isinstance(document, kind)
    return document


def read_file(kind: type[T], path: Path) -> T:
    """Raises BadValue for a file that cannot be read, too."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise BadValue(f"cannot read {path}: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise BadValue(f"cannot read {path}: it is larger than {MOST_BYTES >> 30} GiB")
    return read(kind, content, str(path))


class _Invalid(Exception):
    """A value that the document may not have; the text names its place."""


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(declared: Any, found: Any, place: str) -> Any:
    if dataclasses.is_dataclass(declared) and isinstance(declared, type):
        return _object(declared, found, place)
    origin = get_origin(declared)
    if origin is tuple:
        if not isinstance(found, list):
            raise _Invalid(f"{place or 'the document'} is not a list")
        return tuple(_value(get_args(declared)[0], one, f"{place}[{n}]") for n, one in enumerate(found))
    allowed = get_args(declared) if origin in (Union, types.UnionType) else (declared,)
    # A boolean is an int for Python only.
    if type(found) not in allowed:
        raise _Invalid(f"{place} is not {' or '.join(_NAMES[one] for one in allowed)}")
    if isinstance(found, int) and place.endswith(("offset", "partition")) and found < 0:
        raise _Invalid(f"{place} is negative")
    if place.endswith(".action"):
        actions = ITEM_ACTIONS if place.startswith("items[") else ACTIONS
        if found not in actions:
            raise _Invalid(f"{place} is not one of {', '.join(actions)}")
    return found


def _object(declared: type, found: Any, place: str) -> Any:
    if not isinstance(found, dict):
        raise _Invalid(f"{place or 'the document'} is not an object")
    hints = _hints(declared)
    for name in (*hints, *found):
        if name not in found or name not in hints:
            raise _Invalid(f"{place or 'the document'} {'lacks' if name in hints else 'has an unknown key'} {name!r}")
    head = f"{place}." if place else ""
    return declared(**{name: _value(hint, found[name], head + name) for name, hint in hints.items()})
