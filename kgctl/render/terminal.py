"""Tables on a terminal: fitted to its width, with colour for states, outcomes and errors. Only this module and `fitting` load rich."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.style import Style

from kgctl.render.columns import Layout, Tone
from kgctl.render.fitting import Fitted, Grid, ellipsis_for, fit
from kgctl.render.table import MISSING

HEADER = Style(bold=True)
STYLES = {
    Tone.GOOD: Style(color="green"),
    Tone.CHANGING: Style(color="yellow"),
    Tone.BAD: Style(color="red"),
    Tone.QUIET: Style(dim=True),
}


def show_table(
    rows: Sequence[Any], layout: Layout, verbose: bool, *, fitted: bool, colored: bool, headers: bool = True
) -> str | None:
    """Write the table to stdout, in the width of the terminal if `fitted`; what was left out or shortened, as a sentence."""
    found = fit(rows, layout, verbose, terminal_width() if fitted else 0, ellipsis_for(sys.stdout.encoding))
    grids = found.grids if headers else tuple(grid.without_header() for grid in found.grids)
    sys.stdout.write("\n".join(colored_text(grid, headers=headers) if colored else grid.text() for grid in grids))
    return _losses(found)


def terminal_width() -> int:
    """COLUMNS, or else the terminal's width; 0 if stdout is no terminal, or one that does not know its width."""
    if not sys.stdout.isatty():
        return 0
    try:
        return max(0, int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns))
    except (OSError, ValueError):
        return 0


def colored_text(grid: Grid, *, headers: bool = True) -> str:
    """The lines of a table: the header in bold, each value in the colour of its tone."""
    lines, shown = list(zip(*grid.texts, strict=True)), []
    if headers:
        header = zip(lines.pop(0), grid.widths, strict=True)
        shown.append(_rendered(" ".join(text.ljust(width) for text, width in header).rstrip(), HEADER))
    for line in lines:
        pieces, gap = [], 0
        for column, text, width in zip(grid.columns, line, grid.widths, strict=True):
            if text:
                tone = Tone.QUIET if text == MISSING else column.tone_of(text)
                pieces.append(" " * gap + (_rendered(text, STYLES[tone]) if tone else text))
                gap = 0
            gap += width - cell_len(text) + 1
        shown.append("".join(pieces))
    return "".join(f"{line}\n" for line in shown)


def _rendered(text: str, style: Style) -> str:
    return style.render(text, color_system=ColorSystem.STANDARD)


def _losses(found: Fitted) -> str | None:
    losses = [f"{', '.join(found.left_out)} left out"] if found.left_out else []
    losses += ["names shortened"] if found.shortened else []
    return f"To fit: {', '.join(losses)}; -o wide shows all." if losses else None
