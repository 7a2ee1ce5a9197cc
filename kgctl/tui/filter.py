"""Which rows a person wants to see: text, a regular expression, or all but those."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

R = TypeVar("R")
INVERT = "!"
# A dot alone does not make an expression: names are full of them.
REGEX_SIGNS = frozenset("\\^$*+?{}[]()|")


class BadFilter(Exception):
    """The text is no regular expression; says why in a few words."""


@dataclass(frozen=True)
class Filter:
    """`text` as it was typed. Without a pattern every name passes."""

    text: str = ""
    pattern: re.Pattern[str] | None = None
    inverted: bool = False

    def passes(self, name: str) -> bool:
        return self.pattern is None or (self.pattern.search(name) is None) == self.inverted

    def of(self, rows: Iterable[R], name: Callable[[R], str]) -> list[R]:
        """The rows that pass, in their order."""
        return list(rows) if self.pattern is None else [row for row in rows if self.passes(name(row))]


EVERYTHING = Filter()


def parse(text: str) -> Filter:
    """Text is found anywhere in a name, in any case; with a sign of regular expressions it is one; `!` in front inverts.

    Raises BadFilter.
    """
    inverted = text.startswith(INVERT)
    wanted = text[len(INVERT) :] if inverted else text
    if not wanted:
        return Filter(text)
    expression = wanted if REGEX_SIGNS & set(wanted) else re.escape(wanted)
    try:
        with warnings.catch_warnings():
            # What Python thinks of "[[" is not written across the screen.
            warnings.simplefilter("ignore")
            return Filter(text, re.compile(expression, re.IGNORECASE), inverted)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadFilter(f"bad regex: {error}") from None
