"""The option that chooses groups by a regular expression."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

import typer


def _checked(value: str | None) -> str | None:
    if value is not None:
        try:
            re.compile(value)
        except re.error as error:
            raise typer.BadParameter(f"{value!r} is not a regular expression: {error}") from None
    return value


Match = Annotated[
    str | None,
    typer.Option(
        "--match",
        metavar="REGEX",
        callback=_checked,
        help="Only groups with names that match as a whole. [default: all]",
    ),
]


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """The names that the pattern matches from begin to end; all without a pattern."""
    if pattern is None:
        return list(names)
    matches = re.compile(pattern).fullmatch
    return [name for name in names if matches(name)]
