"""Durations and times as options give them."""

from __future__ import annotations

import typer

from kgctl.client.admin.times import duration_ms, time_ms
from kgctl.client.net.errors import BadValue


def parse_duration(text: str) -> int:
    """`P1DT2H3M4.5S` in milliseconds, or BadParameter."""
    try:
        return duration_ms(text)
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint="'--by-duration'") from None


def parse_datetime(text: str, option: str = "--to-datetime") -> int:
    """An ISO 8601 time in milliseconds since 1970, or BadParameter."""
    try:
        return time_ms(text)
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint=f"'{option}'") from None
