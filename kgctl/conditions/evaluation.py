"""Whether a condition holds, and if not, which of its parts does not.

What is not known makes a comparison neither true nor false, and `not` does not change that: a condition about values
that are not known does not hold.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from broker.light_dataclasses import dataclass
from kgctl.conditions.syntax import And, Comparison, Condition, Not, Or, references, text_of, text_of_value
from kgctl.conditions.variables import Reference


@dataclass(frozen=True, slots=True)
class Unknown:
    """`reason` is a part of a sentence, such as "orders-2 has no committed offset"."""

    reason: str


Value: TypeAlias = "int | str | Unknown"
Values: TypeAlias = "Mapping[Reference, Value]"
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(condition: Condition, values: Values) -> bool | None:
    """None: it depends on values that are not known."""
    match condition:
        case Comparison(reference, compare, value):
            known = values[reference]
            return None if isinstance(known, Unknown) else _COMPARE[compare](known, value)
        case Not(part):
            found = holds(part, values)
            return None if found is None else not found
        case And(parts):
            return _all(holds(part, values) for part in parts)
        case Or(parts):
            none_holds = _all(_negated(holds(part, values)) for part in parts)
            return _negated(none_holds)


@dataclass(frozen=True, slots=True)
class Failure:
    """A part of a condition that does not hold, with the values of its variables."""

    part: Condition
    values: tuple[tuple[Reference, Value], ...]

    def __str__(self) -> str:
        return f"{text_of(self.part)} ({', '.join(said(reference, value) for reference, value in self.values)})"


def failures(condition: Condition, values: Values) -> tuple[Failure, ...]:
    """The smallest parts that all must change before the condition holds; none if it does."""
    return tuple(_failures(condition, values, wanted=True))


def said(reference: Reference, value: Value) -> str:
    if isinstance(value, Unknown):
        return f"{reference} is not known: {value.reason}"
    return f"{reference} is {text_of_value(reference, value)}"


def _failures(condition: Condition, values: Values, *, wanted: bool) -> Iterable[Failure]:
    if holds(condition, values) is wanted:
        return
    match condition:
        case Not(part):
            yield from _failures(part, values, wanted=not wanted)
        case And(parts) if wanted:
            for part in parts:
                yield from _failures(part, values, wanted=True)
        case Or(parts) if not wanted:
            for part in parts:
                yield from _failures(part, values, wanted=False)
        case _:
            used = dict.fromkeys(references(condition))
            yield Failure(condition if wanted else Not(condition), tuple((one, values[one]) for one in used))


def _all(found: Iterable[bool | None]) -> bool | None:
    each = list(found)
    return False if False in each else None if None in each else True


def _negated(found: bool | None) -> bool | None:
    return None if found is None else not found
