"""Filters rows by name: text, a regular expression, or the inverse of either."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from typing import TypeVar

from broker.light_dataclasses import dataclass

R = TypeVar("R")
INVERT = "!"
# A dot alone does not make a regular expression, because names often contain dots.
REGEX_CHARACTERS = frozenset("\\^$*+?{}[]()|")


class BadFilter(Exception):
    """The text is not a valid regular expression; the message says why in a few words."""


@dataclass(frozen=True)
class Filter:
    """`text` is what was typed. Without a pattern every name matches."""

    text: str = ""
    pattern: re.Pattern[str] | None = None
    inverted: bool = False

    def matches(self, name: str) -> bool:
        return self.pattern is None or (self.pattern.search(name) is None) == self.inverted

    def of(self, rows: Iterable[R], name: Callable[[R], str]) -> list[R]:
        """The matching rows, in their order."""
        return list(rows) if self.pattern is None else [row for row in rows if self.matches(name(row))]


EVERYTHING = Filter()


def parse(text: str) -> Filter:
    """Match anywhere in a name, ignoring case. A text with special characters is a regular expression; a leading `!` inverts.

    Raises BadFilter.
    """
    inverted = text.startswith(INVERT)
    wanted = text[len(INVERT) :] if inverted else text
    if not wanted:
        return Filter(text)
    expression = wanted if REGEX_CHARACTERS & set(wanted) else re.escape(wanted)
    try:
        with warnings.catch_warnings():
            # Python warns about "[["; the warning would be printed across the screen.
            warnings.simplefilter("ignore")
            return Filter(text, re.compile(expression, re.IGNORECASE), inverted)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadFilter(f"bad regex: {error}") from None
