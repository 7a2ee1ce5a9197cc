"""The topics that --topics selects. Does not import Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kgctl.client.net.errors import NotFound


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """The names that match the pattern as a whole, sorted; all of them without one. Raises NotFound if the pattern matches none."""
    found = sorted(name for name in names if pattern is None or re.fullmatch(pattern, name))
    if pattern is not None and not found:
        raise NotFound(f"no topic matches --topics {pattern!r}")
    return found
