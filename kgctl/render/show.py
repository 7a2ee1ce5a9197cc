"""Print an answer to stdout in the chosen format, and notes for people to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from kgctl.model.failure import RowError
from kgctl.render.table import printable

TABLES = ("table", "wide")


def show(
    rows: Sequence[Any],
    output: str = "table",
    color: str = "auto",
    *,
    kind: str,
    verbose: bool = False,
    errors: Iterable[RowError | None] = (),
) -> None:
    """Print rows, which are dataclasses of one type. `kind` names them in the envelope and selects the table.

    `verbose` adds the columns that Kafka's --verbose adds.
    On a terminal a table is fitted to its width and coloured; a pipe gets the table as Kafka's tools print it.
    """
    if output in TABLES:
        _show_table(rows, output, color, kind, verbose)
        return
    from kgctl.render import machine

    if output == "csv":
        from kgctl.render.layouts import layout_of

        text = machine.as_csv(rows, layout_of(kind, rows).row, escaped=sys.stdout.isatty())
    else:
        text = machine.as_yaml(rows, kind) if output == "yaml" else machine.as_json(rows, kind)
    sys.stdout.write(text)


def note(text: str) -> None:
    """Write a sentence for people to stderr."""
    sys.stderr.write(printable(text) + "\n")


def wants_color(color: str) -> bool:
    """Whether stdout gets colours: as `--color` says, and for `auto` on a terminal that has them, unless NO_COLOR is set."""
    if color != "auto":
        return color == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _show_table(rows: Sequence[Any], output: str, color: str, kind: str, verbose: bool) -> None:
    from kgctl.render.layouts import layout_of

    layout, colored = layout_of(kind, rows), wants_color(color)
    if output == "wide":
        layout = layout.widened()
    if not (colored or sys.stdout.isatty()):
        from kgctl.render.table import table

        sys.stdout.write(table(rows, layout, verbose))
        return
    from kgctl.render.terminal import show_table

    losses = show_table(rows, layout, verbose, fitted=output == "table", colored=colored)
    if losses:
        sys.stdout.flush()
        note(losses)
