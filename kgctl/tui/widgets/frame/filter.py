"""Filters rows by words: text, a regular expression, `field:value`, and the inverse of each. All words must match."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from broker.light_dataclasses import dataclass

R = TypeVar("R")
INVERT, FIELD = "!", ":"
# A dot alone does not make a regular expression, because names often contain dots.
REGEX_CHARACTERS = frozenset("\\^$*+?{}[]()|")
NUMBER = re.compile(r"(>=|<=|>|<|=)?(\d+(?:\.\d+)?)([kMG])?")
UNITS = {None: 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
COMPARISONS: Mapping[str | None, Callable[[float, float], bool]] = {
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
    "=": lambda value, limit: value == limit,
    None: lambda value, limit: value == limit,
}


class BadFilter(Exception):
    """The text is not a valid filter; the message says why in a few words."""


@dataclass(frozen=True)
class Field(Generic[R]):
    """What `name:value` looks at: the texts of a row, any of which may match, or with `number` its number."""

    name: str
    texts: Callable[[R], Iterable[str | None]] | None = None
    number: Callable[[R], float | None] | None = None

    @property
    def example(self) -> str:
        return f"{self.name}{FIELD}{'>100' if self.number else '...'}"


@dataclass(frozen=True)
class Word:
    test: Callable[[Any], bool]
    inverted: bool = False

    def matches(self, row: Any) -> bool:
        return self.test(row) is not self.inverted


@dataclass(frozen=True)
class Filter:
    """`text` is what was typed. `words` are what a row must match, each for itself; without any, every row matches."""

    text: str = ""
    words: tuple[Word, ...] = ()

    @property
    def is_active(self) -> bool:
        return bool(self.words)

    def matches(self, row: Any) -> bool:
        return all(word.matches(row) for word in self.words)

    def of(self, rows: Sequence[R]) -> Sequence[R]:
        """The matching rows, in their order."""
        return [row for row in rows if self.matches(row)] if self.words else rows


EVERYTHING = Filter()


def parse(text: str, name: Callable[[R], str], fields: Sequence[Field[R]] = ()) -> Filter:
    """Words match anywhere in a name, ignoring case; those with special characters are regular expressions.

    A leading `!` inverts a word. `name:value` looks at a field instead of the name. Raises BadFilter.
    """
    known = {field.name: field for field in fields}
    return Filter(text, tuple(word for typed in text.split() if (word := _word(typed, name, known)) is not None))


def _word(typed: str, name: Callable[[R], str], fields: Mapping[str, Field[R]]) -> Word | None:
    inverted = typed.startswith(INVERT)
    wanted = typed[len(INVERT) :] if inverted else typed
    field_name, colon, value = wanted.partition(FIELD)
    field = fields.get(field_name.lower()) if colon else None
    if field is not None:
        test = _field_test(field, value) if value else None
    else:
        pattern = _pattern(wanted) if wanted else None
        test = None if pattern is None else lambda row: pattern.search(name(row)) is not None
    # A word that is still being typed, such as `!` or `state:`, excludes nothing.
    return None if test is None else Word(test, inverted)


def _field_test(field: Field[R], value: str) -> Callable[[R], bool]:
    number, texts = field.number, field.texts
    if number is not None:
        if value in (">", "<", ">=", "<=", "="):
            return lambda row: number(row) is not None
        found = NUMBER.fullmatch(value)
        if found is None:
            raise BadFilter(f"{field.name}{FIELD} needs a number, such as {field.example}")
        compare, limit = COMPARISONS[found[1]], float(found[2]) * UNITS[found[3]]

        def is_in(row: R) -> bool:
            known = number(row)
            return known is not None and compare(known, limit)

        return is_in
    pattern = _pattern(value)
    return lambda row: texts is not None and any(pattern.search(text) is not None for text in texts(row) if text)


def _pattern(wanted: str) -> re.Pattern[str]:
    expression = wanted if REGEX_CHARACTERS & set(wanted) else re.escape(wanted)
    try:
        with warnings.catch_warnings():
            # Python warns about "[["; the warning would be printed across the screen.
            warnings.simplefilter("ignore")
            return re.compile(expression, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadFilter(f"bad regex: {error}") from None
