"""What a condition is made of, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from broker.light_dataclasses import dataclass
from kgctl.conditions.durations import text_of_ms
from kgctl.conditions.variables import VARIABLES, Reference, Type, quoted


@dataclass(frozen=True, slots=True)
class Comparison:
    """`value` has the type of the variable; durations are in milliseconds."""

    reference: Reference
    operator: str
    value: int | str


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Condition, ...]


Condition: TypeAlias = "Comparison | Not | And | Or"


def text_of(condition: Condition) -> str:
    """The condition as it can be parsed, with no more parentheses than it needs."""
    match condition:
        case Comparison(reference, operator, value):
            return f"{reference} {operator} {text_of_value(reference, value)}"
        case Not(part):
            return f"not {_inside(part, And | Or)}"
        case And(parts):
            return " and ".join(_inside(part, And | Or) for part in parts)
        case Or(parts):
            return " or ".join(_inside(part, Or) for part in parts)


def text_of_value(reference: Reference, value: int | str) -> str:
    if isinstance(value, str):
        return quoted(value)
    return text_of_ms(value) if VARIABLES[reference.name].type is Type.DURATION else str(value)


def references(condition: Condition) -> Iterator[Reference]:
    """The variables in the condition, as often as they occur."""
    match condition:
        case Comparison(reference, _, _):
            yield reference
        case Not(part):
            yield from references(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from references(part)


def _inside(part: Condition, looser: object) -> str:
    return f"({text_of(part)})" if isinstance(part, looser) else text_of(part)  # type: ignore[arg-type]
