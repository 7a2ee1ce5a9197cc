"""Regular expressions as options give them. A pattern matches whole names: `orders` does not match `orders-dlq`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import typer


def parse_pattern(text: str, option: str) -> re.Pattern[str]:
    """The compiled pattern, or BadParameter."""
    if not text:
        raise typer.BadParameter("an empty pattern.", param_hint=f"'{option}'")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise typer.BadParameter(f"{text!r} is not a regular expression: {error}.", param_hint=f"'{option}'") from None


def parsed(option: str) -> Callable[[str | None], str | None]:
    """A callback that refuses what is not a pattern."""

    def check(text: str | None) -> str | None:
        if text is not None:
            parse_pattern(text, option)
        return text

    return check


def matching(names: Iterable[str], pattern: str | re.Pattern[str] | None) -> list[str]:
    """The names that match from begin to end; all without a pattern."""
    return list(names) if pattern is None else [name for name in names if re.fullmatch(pattern, name)]
