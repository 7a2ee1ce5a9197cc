"""Arguments and options that several commands share, and the error for options that exclude each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer


def not_empty(value: str | list[str] | None) -> str | list[str] | None:
    """A callback that refuses an empty name."""
    if value == "" or (isinstance(value, list) and "" in value):
        raise typer.BadParameter("an empty name.")
    return value


Group = Annotated[str, typer.Argument(metavar="GROUP", show_default=False, callback=not_empty)]
Execute = Annotated[bool, typer.Option("--execute", help="Apply the plan. [default: show the plan and change nothing]")]


def only_one(given: dict[str, object]) -> None:
    """BadParameter if several of these options are given. Keys are options as users type them."""
    names = [name for name, value in given.items() if value not in (None, False, [], ())]
    if len(names) > 1:
        raise typer.BadParameter(
            f"Give {' or '.join(names)}, not {'both' if len(names) == 2 else 'all of them'}.",
            param_hint=", ".join(f"'{name}'" for name in names),
        )


def named(given: list[str] | None, known: Sequence[str], option: str) -> list[str]:
    """The values in Kafka's spelling; upper and lower case do not matter."""
    spelled = {name.lower(): name for name in known}
    values = [value.strip() for text in given or () for value in text.split(",") if value.strip()]
    for value in values:
        if value.lower() not in spelled:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.", param_hint=f"'{option}'")
    return [spelled[value.lower()] for value in values]
