"""Arguments that the verbs of `kgctl topics` share."""

from __future__ import annotations

from typing import Annotated

import typer

TOOL = "kafka-topics.sh"
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC...", show_default=False)]


def pairs(texts: list[str], option: str) -> dict[str, str]:
    """NAME=VALUE, each name once. Raises BadParameter."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint=f"'{option}'")
        found[name] = value
    return found
