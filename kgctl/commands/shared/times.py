"""Times and durations as options give them."""

from __future__ import annotations

import time

import typer

from kgctl.client.admin.times import duration_ms, moment_ms
from kgctl.client.net.errors import BadValue


def parse_datetime(text: str, option: str) -> int:
    """A time in milliseconds since 1970: ISO 8601, such a number, or `now-15m`. Raises BadParameter."""
    try:
        return moment_ms(text, int(time.time() * 1000))
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint=f"'{option}'") from None


def parse_duration(text: str, option: str) -> int:
    """A duration above zero in milliseconds: `1h30m` or `PT1H30M`. Raises BadParameter."""
    try:
        found = duration_ms(text)
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint=f"'{option}'") from None
    if found <= 0:
        raise typer.BadParameter(f"{text!r} is not above zero.", param_hint=f"'{option}'")
    return found


def check_span(since_ms: int | None, until_ms: int | None) -> None:
    """Raises BadParameter if --until is not after --from."""
    if since_ms is not None and until_ms is not None and until_ms <= since_ms:
        raise typer.BadParameter("it is not after --from.", param_hint="'--until'")
