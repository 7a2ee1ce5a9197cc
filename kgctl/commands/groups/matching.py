"""The option that chooses groups by a regular expression."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from kgctl.commands.shared import patterns


def _checked(value: str | None) -> str | None:
    if value is not None:
        patterns.parse_pattern(value, "--match")
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
    return list(names) if pattern is None else patterns.matching(names, patterns.parse_pattern(pattern, "--match"))
