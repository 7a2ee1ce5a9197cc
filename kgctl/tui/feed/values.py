"""Frozen dataclasses as JSON values and back, for recordings.

A dataclass is an object without the fields that have their default; a tuple or a set is a list, a mapping a list of pairs
unless its keys are texts. What a later version of kgctl adds has a default, and an unknown field is skipped.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import types
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
Convert = Callable[[Any], Any]
_PLAIN = (str, int, float, bool, type(None))


class NotAValue(ValueError):
    """A JSON value that is not of the expected type."""


def to_json(value: Any) -> Any:
    """What `json.dumps` writes."""
    kind = value.__class__
    if kind in _PLAIN:
        return value
    return _writer(kind)(value)


def from_json(kind: type[T], found: Any) -> T:
    """The value of this type. Raises NotAValue."""
    try:
        value: T = reader(cast("Any", kind))(found)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise NotAValue(f"not a {getattr(kind, '__name__', kind)}: {error}") from None
    return value


# --- writing, by the class of a value ---


@cache
def _writer(kind: type) -> Convert:
    if dataclasses.is_dataclass(kind):
        return _dataclass_writer(kind)
    if issubclass(kind, Enum):
        return lambda value: value.value
    if issubclass(kind, Mapping):
        return _write_mapping
    if issubclass(kind, frozenset | set):
        return lambda value: [to_json(one) for one in sorted(value)]
    if issubclass(kind, tuple | list):
        return lambda value: [to_json(one) for one in value]
    if issubclass(kind, _PLAIN):
        return lambda value: value
    raise TypeError(f"a recording has no values of the type {kind.__name__}")


def _dataclass_writer(kind: type) -> Convert:
    fields = [(field.name, _default(field)) for field in dataclasses.fields(kind) if field.init]

    def write(value: Any) -> dict[str, Any]:
        found = {}
        for name, default in fields:
            one = getattr(value, name)
            if one is default or (one.__class__ is default.__class__ and one == default):
                continue
            found[name] = one if one.__class__ in _PLAIN else to_json(one)
        return found

    return write


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _write_mapping(value: Mapping[Any, Any]) -> Any:
    if all(key.__class__ is str for key in value):
        return {key: to_json(one) for key, one in value.items()}
    return [[to_json(key), to_json(one)] for key, one in value.items()]


# --- reading, by the declared type ---


@cache
def reader(kind: Any) -> Convert:
    """A function from a JSON value to a value of the declared type."""
    if kind is Any:
        return lambda found: found
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _union_reader(get_args(kind))
    if origin is not None:
        return _container_reader(origin, get_args(kind))
    if dataclasses.is_dataclass(kind):
        return _dataclass_reader(kind)
    if issubclass(kind, tuple):
        return _named_tuple_reader(kind)
    if issubclass(kind, Enum):
        return lambda found: kind(found)
    return _plain_reader(kind)


def _plain_reader(kind: type) -> Convert:
    allowed = (float, int) if kind is float else (kind,)

    def read(found: Any) -> Any:
        if found.__class__ not in allowed:
            raise NotAValue(f"{found!r:.40} is not of the type {kind.__name__}")
        return found

    return read


def _union_reader(kinds: tuple[Any, ...]) -> Convert:
    readers = [reader(kind) for kind in kinds if kind is not type(None)]
    is_optional = len(readers) < len(kinds)
    if len(readers) == 1:
        only = readers[0]
        return lambda found: None if found is None and is_optional else only(found)

    def read(found: Any) -> Any:
        if found is None and is_optional:
            return None
        for one in readers:
            try:
                return one(found)
            except (ValueError, TypeError, KeyError, AttributeError):
                continue
        raise NotAValue(f"{found!r:.40} has an unexpected type")

    return read


def _container_reader(origin: Any, arguments: tuple[Any, ...]) -> Convert:
    if origin in (tuple, collections.abc.Sequence, list) and arguments[1:] in ((), (Ellipsis,)):
        return _collection_reader(tuple, arguments[0])
    if origin is tuple:
        each = [reader(one) for one in arguments]
        return lambda found: tuple(read(one) for read, one in zip(each, _listed(found), strict=True))
    if origin in (frozenset, set, collections.abc.Set):
        return _collection_reader(frozenset, arguments[0])
    if origin in (dict, collections.abc.Mapping):
        return _mapping_reader(*arguments)
    raise TypeError(f"a recording has no values of the type {origin}")


def _collection_reader(make: Callable[[Collection[Any]], Any], kind: Any) -> Convert:
    read = reader(kind)
    return lambda found: make([read(one) for one in _listed(found)])


def _mapping_reader(key: Any, value: Any) -> Convert:
    read_key, read_value = reader(key), reader(value)

    def read(found: Any) -> dict[Any, Any]:
        pairs = found.items() if isinstance(found, dict) else _listed(found)
        return {read_key(one): read_value(other) for one, other in pairs}

    return read


def _listed(found: Any) -> Any:
    if found.__class__ is not list:
        raise NotAValue(f"{found!r:.40} is not a list")
    return found


def _named_tuple_reader(kind: Any) -> Convert:
    hints = get_type_hints(kind)
    each = [reader(hints[name]) for name in kind._fields]
    return lambda found: kind(*[read(one) for read, one in zip(each, _listed(found), strict=True)])


def _dataclass_reader(kind: Any) -> Convert:
    hints = get_type_hints(kind)
    # Made at the first use, as a type may contain itself.
    readers: dict[str, Convert] = {}
    names = frozenset(field.name for field in dataclasses.fields(kind) if field.init)

    def read(found: Any) -> Any:
        if found.__class__ is not dict:
            raise NotAValue(f"{found!r:.40} is not an object")
        values = {}
        for name, one in found.items():
            if name in names:
                if (convert := readers.get(name)) is None:
                    convert = readers[name] = reader(hints[name])
                values[name] = convert(one)
        return kind(**values)

    return read
