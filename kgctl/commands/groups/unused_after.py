"""The option --unused-after."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.times import parse_duration

DAY = "24h"
UnusedAfter = Annotated[
    str,
    typer.Option(
        "--unused-after", metavar="DURATION", help="A group without members and commits for this long is UNUSED."
    ),
]


def unused_after_s(text: str) -> float:
    """The value of --unused-after in seconds."""
    return parse_duration(text, "--unused-after") / 1000
