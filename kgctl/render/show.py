"""Print an answer to stdout in the form that was asked for, and notes for people to stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from kgctl.render.table import printable


def show(
    rows: Sequence[Any], output: str = "table", *, kind: str, row_type: type | None = None, verbose: bool = False
) -> None:
    """Rows are dataclasses of one type. `kind` names them in the envelope and picks the table.

    `row_type` gives CSV its header when there are no rows; `verbose` adds the columns that Kafka's --verbose adds.
    """
    sys.stdout.write(_text(rows, output, kind, row_type, verbose))


def note(text: str) -> None:
    """A sentence for people, on stderr."""
    sys.stderr.write(printable(text) + "\n")


def _text(rows: Sequence[Any], output: str, kind: str, row_type: type | None, verbose: bool) -> str:
    # Loaded one by one: a command needs a single one of them.
    if output == "table":
        from kgctl.render.layouts import layout_of
        from kgctl.render.table import table

        return table(rows, layout_of(kind, rows), verbose)
    from kgctl.render import machine

    if output == "csv":
        return machine.as_csv(rows, row_type)
    return machine.as_yaml(rows, kind) if output == "yaml" else machine.as_json(rows, kind)
