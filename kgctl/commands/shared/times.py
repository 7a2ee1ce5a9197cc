"""Times as options give them."""

from __future__ import annotations

import typer

from kgctl.client.admin.times import time_ms
from kgctl.client.net.errors import BadValue


def parse_datetime(text: str, option: str) -> int:
    """An ISO 8601 time in milliseconds since 1970, or BadParameter."""
    try:
        return time_ms(text)
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint=f"'{option}'") from None
