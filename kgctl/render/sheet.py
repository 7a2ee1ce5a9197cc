"""One row as a sheet with a field per line, for rows that are too wide for a table."""

from __future__ import annotations

import sys
from typing import Any

from kgctl.render.layouts import layout_of
from kgctl.render.table import cell


def show_sheet(row: Any, kind: str) -> None:
    """Print the fields that have a value to stdout."""
    fields = [(column.header, column.of(row)) for column in layout_of(kind, [row]).columns]
    filled = [(header, value) for header, value in fields if value is not None and value != ()]
    width = max(len(header) for header, _ in filled)
    sys.stdout.write("".join(f"{header.ljust(width)}  {cell(value)}\n" for header, value in filled))
