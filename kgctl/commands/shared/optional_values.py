"""Options whose value may be left out, which Typer does not have: an empty value stands in for a missing one."""

from __future__ import annotations

import re
from collections.abc import Sequence

# What follows counts as the value only if it looks like one; else it is the next argument.
_DURATION = re.compile(r"\d[\dwdhms.]*|PT?\d.*", re.ASCII)
_SECONDS = re.compile(r"\d+\.?\d*", re.ASCII)
_VALUES = {"--drain": _DURATION, "--watch": _SECONDS}


def with_values(arguments: Sequence[str]) -> list[str]:
    """The arguments, with an empty value behind each of these options that has none."""
    filled: list[str] = []
    for number, argument in enumerate(arguments):
        if argument == "--":
            return [*filled, *arguments[number:]]
        filled.append(argument)
        pattern = _VALUES.get(argument)
        following = arguments[number + 1] if number + 1 < len(arguments) else ""
        if pattern is not None and not pattern.fullmatch(following):
            filled.append("")
    return filled
