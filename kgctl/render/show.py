"""Print an answer to stdout in the form that was asked for, and notes for people to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from kgctl.render.table import printable

TABLES = ("table", "wide")


def show(
    rows: Sequence[Any], output: str = "table", *, kind: str, row_type: type | None = None, verbose: bool = False
) -> None:
    """Rows are dataclasses of one type. `kind` names them in the envelope and picks the table.

    `row_type` gives CSV its header when there are no rows; `verbose` adds the columns that Kafka's --verbose adds.
    A table that is too wide for the terminal is made to fit it; one that goes anywhere else is as Kafka's tools print it.
    """
    limit = _terminal_width() if output == "table" else 0
    if limit:
        _show_fitted(rows, kind, verbose, limit)
    else:
        sys.stdout.write(_text(rows, output, kind, row_type, verbose))


def note(text: str) -> None:
    """A sentence for people, on stderr."""
    sys.stderr.write(printable(text) + "\n")


def _terminal_width() -> int:
    """0 if stdout is no terminal, or one that does not know its width. COLUMNS goes before what it says."""
    if not sys.stdout.isatty():
        return 0
    try:
        return max(0, int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns))
    except (OSError, ValueError):
        return 0


def _show_fitted(rows: Sequence[Any], kind: str, verbose: bool, limit: int) -> None:
    from kgctl.render.fitting import ellipsis_for, fit
    from kgctl.render.layouts import layout_of
    from kgctl.render.table import aligned, blocks

    found = list(blocks(rows, layout_of(kind, rows), verbose))
    if all(block.aligned_width <= limit for block in found):
        sys.stdout.write("\n".join(map(aligned, found)))
        return
    fitted = fit(found, limit, ellipsis_for(sys.stdout.encoding))
    sys.stdout.write(fitted.text)
    sys.stdout.flush()
    done = [f"{', '.join(fitted.left_out)} left out"] if fitted.left_out else []
    done += ["names shortened"] if fitted.shortened else []
    if done:
        note(f"To fit {limit} columns: {', '.join(done)}; -o wide shows all.")


def _text(rows: Sequence[Any], output: str, kind: str, row_type: type | None, verbose: bool) -> str:
    # Loaded one by one: a command needs a single one of them.
    if output in TABLES:
        from kgctl.render.layouts import layout_of
        from kgctl.render.table import table

        return table(rows, layout_of(kind, rows), verbose)
    from kgctl.render import machine

    if output == "csv":
        return machine.as_csv(rows, row_type)
    return machine.as_yaml(rows, kind) if output == "yaml" else machine.as_json(rows, kind)
