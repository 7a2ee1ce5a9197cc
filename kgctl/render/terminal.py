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


def show_table(rows: Sequence[Any], layout: Layout, verbose: bool, *, fitted: bool, colored: bool) -> str | None:
    """Write the table to stdout, in the width of the terminal if `fitted`; what was left out or shortened, as a sentence."""
    found = fit(rows, layout, verbose, terminal_width() if fitted else 0, ellipsis_for(sys.stdout.encoding))
    sys.stdout.write("\n".join(map(colored_text, found.grids)) if colored else found.text)
    return _losses(found)


def terminal_width() -> int:
    """COLUMNS, or else the terminal's width; 0 if stdout is no terminal, or one that does not know its width."""
    if not sys.stdout.isatty():
        return 0
    try:
        return max(0, int(os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns))
    except (OSError, ValueError):
        return 0


def colored_text(grid: Grid) -> str:
    """The lines of a table: the header in bold, each value in the colour of its tone."""
    header, *lines = zip(*grid.texts, strict=True)
    plain = " ".join(text.ljust(width) for text, width in zip(header, grid.widths, strict=True)).rstrip()
    shown = [_rendered(plain, HEADER)]
    for line in lines:
        pieces, gap = [], 0
        for column, text, width in zip(grid.columns, line, grid.widths, strict=True):
            if text:
                tone = Tone.QUIET if text == MISSING else column.tone_of(text)
                pieces.append(" " * gap + (_rendered(text, STYLES[tone]) if tone else text))
                gap = 0
            gap += width - cell_len(text) + 1
        shown.append("".join(pieces))
    return "\n".join(shown) + "\n"


def _rendered(text: str, style: Style) -> str:
    return style.render(text, color_system=ColorSystem.STANDARD)


def _losses(found: Fitted) -> str | None:
    losses = [f"{', '.join(found.left_out)} left out"] if found.left_out else []
    losses += ["names shortened"] if found.shortened else []
    return f"To fit: {', '.join(losses)}; -o wide shows all." if losses else None
