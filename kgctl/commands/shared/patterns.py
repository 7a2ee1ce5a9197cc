"""Regular expressions as options give them. A pattern matches whole names: `orders` does not match `orders-dlq`."""

from __future__ import annotations

import re
from collections.abc import Iterable

import typer


def parse_pattern(text: str, option: str) -> re.Pattern[str]:
    """The compiled pattern, or BadParameter."""
    if not text:
        raise typer.BadParameter("an empty pattern.", param_hint=f"'{option}'")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise typer.BadParameter(f"{text!r} is not a regular expression: {error}.", param_hint=f"'{option}'") from None


def matching(names: Iterable[str], pattern: re.Pattern[str]) -> list[str]:
    return [name for name in names if pattern.fullmatch(name)]
