"""One row as a sheet, a field a line: for what is too wide to be a table of one row."""

from __future__ import annotations

import sys
from typing import Any

from kgctl.render.layouts import layout_of
from kgctl.render.table import cell


def show_sheet(row: Any, kind: str) -> None:
    """Print the fields that have a value to stdout."""
    fields = [(column.header, column.of(row)) for column in layout_of(kind, [row]).columns]
    told = [(header, value) for header, value in fields if value is not None and value != ()]
    width = max(len(header) for header, _ in told)
    sys.stdout.write("".join(f"{header.ljust(width)}  {cell(value)}\n" for header, value in told))
