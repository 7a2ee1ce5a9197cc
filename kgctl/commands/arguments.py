"""Arguments and options that several commands share, and the error for options that exclude each other."""

from __future__ import annotations

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
