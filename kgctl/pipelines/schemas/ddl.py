"""Types in Spark's DDL as values: a name for simple types, `Array` and `Struct` for the others."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\s*(`[^`]*`|[A-Za-z_][A-Za-z_0-9]*|\d+|[<>:,()])")


@dataclass(frozen=True, slots=True)
class Array:
    element: Type


@dataclass(frozen=True, slots=True)
class Map:
    key: Type
    value: Type


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[tuple[str, Type], ...]


Type = str | Array | Map | Struct


def parse(text: str) -> Type:
    """Raises ValueError if the text is no type."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != re.sub(r"\s", "", text):
        raise ValueError(f"{text!r} is not a type")
    tokens.reverse()
    found = _type(tokens)
    if tokens:
        raise ValueError(f"{text!r} is not a type")
    return found


def _type(tokens: list[str]) -> Type:
    name = tokens.pop().lower()
    if not tokens or tokens[-1] != "<":
        return name
    tokens.pop()
    found: Type
    if name == "array":
        found = Array(_type(tokens))
    elif name == "map":
        key = _type(tokens)
        _expect(tokens, ",")
        found = Map(key, _type(tokens))
    elif name == "struct":
        found = Struct(tuple(_fields(tokens)))
    else:
        raise ValueError(f"{name}<...> is not a type")
    _expect(tokens, ">")
    return found


def _fields(tokens: list[str]) -> list[tuple[str, Type]]:
    fields = []
    while True:
        name = tokens.pop().strip("`")
        _expect(tokens, ":")
        fields.append((name, _type(tokens)))
        if tokens[-1] != ",":
            return fields
        tokens.pop()


def _expect(tokens: list[str], wanted: str) -> None:
    if not tokens or tokens.pop() != wanted:
        raise ValueError(f"{wanted} is missing in a type")
