"""Keys for the columns of a query."""

from __future__ import annotations

import re
from collections.abc import Iterable
from keyword import iskeyword


def column_keys(headers: Iterable[str]) -> list[str]:
    """Column names that can be keys: `count(*)` becomes count, and a second `topic` becomes topic_2."""
    names: list[str] = []
    for header in headers:
        base = re.sub(r"\W+", "_", header, flags=re.ASCII).strip("_") or "column"
        base = f"column_{base}" if base[0].isdigit() or iskeyword(base) else base
        name, number = base, 1
        while name in names:
            number += 1
            name = f"{base}_{number}"
        names.append(name)
    return names
