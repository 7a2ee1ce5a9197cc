"""Print an answer to stdout in the chosen format, and notes for people to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kgctl.render.formats import TABLES, is_program, program_of
from kgctl.render.table import printable

# Most commands that print a note show no rows.
if TYPE_CHECKING:
    from kgctl.model.failure import RowError
    from kgctl.render.columns import Layout
    from kgctl.render.selection import Selection


def show(
    rows: Sequence[Any],
    output: str = "table",
    color: str = "auto",
    *,
    kind: str,
    row: type | None = None,
    verbose: bool = False,
    errors: Iterable[RowError | None] = (),
    selection: Selection | None = None,
) -> None:
    """Print rows, which are dataclasses of one type. `kind` names them in the envelope and selects the table.

    `row`: the type of the rows, for a kind without a table of its own.

    `verbose` adds the columns that Kafka's --verbose adds. `errors` have no row; only formats with an envelope have them.
    On a terminal a table is fitted to its width and coloured; a pipe gets the table as Kafka's tools print it.
    Raises BadColumn, or BadFormat for a template or path that fails on these rows.
    """
    from kgctl.render.layouts import layout_of
    from kgctl.render.selection import ALL

    selection = selection or ALL
    layout = layout_of(kind, rows, row)
    rows = selection.sorted(rows, layout)
    if output in TABLES:
        layout = selection.of(layout.widened() if output == "wide" else layout)
        _show_table(rows, layout, color, verbose, fitted=output == "table", headers=selection.headers)
    else:
        sys.stdout.write(_for_programs(rows, layout, output, kind, errors, selection))


def note(text: str) -> None:
    """Write a sentence for people to stderr."""
    sys.stderr.write(printable(text) + "\n")


def wants_color(color: str) -> bool:
    """Whether stdout gets colours: as `--color` says, and for `auto` on a terminal that has them, unless NO_COLOR is set."""
    if color != "auto":
        return color == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _show_table(rows: Sequence[Any], layout: Layout, color: str, verbose: bool, *, fitted: bool, headers: bool) -> None:
    colored = wants_color(color)
    if not (colored or sys.stdout.isatty()):
        from kgctl.render.table import table

        sys.stdout.write(table(rows, layout, verbose, headers=headers))
        return
    from kgctl.render.terminal import show_table

    losses = show_table(rows, layout, verbose, fitted=fitted, colored=colored, headers=headers)
    if losses:
        sys.stdout.flush()
        note(losses)


def _for_programs(
    rows: Sequence[Any],
    layout: Layout,
    output: str,
    kind: str,
    errors: Iterable[RowError | None],
    selection: Selection,
) -> str:
    from kgctl.render import machine

    escaped, keys = sys.stdout.isatty(), selection.keys(layout)
    if output == "csv":
        return machine.as_csv(rows, layout.row, keys=keys, headers=selection.headers, escaped=escaped)
    if output == "name":
        return machine.as_names(rows, layout.name_field, escaped=escaped) if rows else ""
    content = machine.envelope(rows, kind, names=layout.names, errors=errors, keys=keys)
    if is_program(output):
        return program_of(output).run(content, escaped)
    if output == "jsonl":
        return machine.as_json_lines(content["rows"])
    return machine.as_yaml(content) if output == "yaml" else machine.as_json(content)
