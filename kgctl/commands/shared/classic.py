"""Options of a command as words for Kafka's own tools, where both have the same ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def given_options(ctx: Any, *names: str) -> list[str]:
    """The options of these parameters that differ from their defaults."""
    found = {parameter.name: parameter for parameter in ctx.command.params}
    given = [name for name in names if ctx.params[name] != found[name].default]
    return [word for name in given for word in option(found[name].opts[0], ctx.params[name])]


def option(flag: str, value: object) -> list[str]:
    """The words of one option; none if it is not given."""
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    return [word for one in _each(value) for word in (flag, str(one))]


def _each(value: object) -> Iterable[object]:
    return value if isinstance(value, list | tuple) else [value]
