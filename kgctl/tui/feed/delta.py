"""What changed between two JSON values, and values made from what changed. Parts that are equal stay the same objects.

A patch is a list: [0, value] replaces; [1, {key: patch}, [removed key]] changes an object; [2, {place: patch}] changes a list of
the same length.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from kgctl.tui.feed.values import NotAValue, from_json, to_json

REPLACED, OBJECT, LIST = range(3)
Patch = list[Any]


def diff(old: Any, new: Any) -> Patch | None:
    """The patch that makes `new` of `old`; None if they are equal."""
    if old is new:
        return None
    kind = new.__class__
    if old.__class__ is kind is dict:
        removed = [key for key in old if key not in new]
        changed = {
            key: patch
            for key, value in new.items()
            if (patch := diff(old[key], value) if key in old else [REPLACED, value]) is not None
        }
        return [OBJECT, changed, removed] if removed else [OBJECT, changed] if changed else None
    if old.__class__ is kind is list and len(old) == len(new):
        places = {
            str(place): patch
            for place, (one, other) in enumerate(zip(old, new, strict=True))
            if (patch := diff(one, other)) is not None
        }
        return [LIST, places] if places else None
    return None if old.__class__ is kind and old == new else [REPLACED, new]


def patched(old: Any, patch: Patch | None) -> Any:
    """A new value; `old` stays as it is. Raises NotAValue if the patch does not fit."""
    if patch is None:
        return old
    try:
        if patch[0] == REPLACED:
            return patch[1]
        if patch[0] == OBJECT:
            found = dict(old)
            for key in patch[2] if len(patch) > 2 else ():
                del found[key]
            for key, change in patch[1].items():
                found[key] = patched(old.get(key), change)
            return found
        listed = list(old)
        for place, change in patch[1].items():
            listed[int(place)] = patched(listed[int(place)], change)
        return listed
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise NotAValue(f"a change does not fit: {error}") from None


def written(value: Any, old: Any, old_json: Any) -> Any:
    """`to_json(value)`, with the parts of `old_json` where `value` equals `old`, which it was written from."""
    if value is old:
        return old_json
    if value.__class__ is not old.__class__ or old_json.__class__ is not dict:
        return to_json(value)
    if isinstance(value, Mapping):
        if not all(key.__class__ is str for key in value):
            return to_json(value)
        return {
            key: old_json[key] if key in old_json and old[key] == one else to_json(one) for key, one in value.items()
        }
    if not hasattr(value, "__dataclass_fields__"):
        return to_json(value)
    found = {}
    for name in _names(value.__class__):
        one, was = getattr(value, name), getattr(old, name)
        if isinstance(one, Mapping):
            found[name] = written(one, was, old_json.get(name))
        elif one == was:
            # What has its default is not in the object.
            found |= {name: old_json[name]} if name in old_json else {}
        else:
            found[name] = to_json(one)
    return found


def read_again(kind: Any, found: Any, old_json: Any, old: Any) -> Any:
    """`from_json(kind, found)`, with the parts of `old` whose JSON values are the same objects as in `old_json`."""
    if found is old_json and old is not None:
        return old
    if old is None or found.__class__ is not dict or old_json.__class__ is not dict:
        return from_json(kind, found)
    if hasattr(kind, "__dataclass_fields__"):
        hints = _hints(kind)
        values = {
            name: read_again(hints[name], one, old_json.get(name), getattr(old, name))
            for name, one in found.items()
            if name in hints
        }
        return kind(**values)
    arguments = get_args(kind)
    if get_origin(kind) is None or len(arguments) != 2 or arguments[0] is not str:
        return from_json(kind, found)
    return {key: read_again(arguments[1], one, old_json.get(key), old.get(key)) for key, one in found.items()}


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in _names(kind)}
