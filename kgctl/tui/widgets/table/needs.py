"""How many cells the texts of the visible rows take, held for some refreshes so that columns do not jump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from rich.cells import cell_len

from kgctl.tui.widgets.table.columns import Column, R

# A column becomes narrower only if its texts have needed fewer cells in this number of refreshes.
PATIENCE = 10
CUT = "\u2026"


class Needs(Generic[R]):
    """The cells that each column which flexes needs."""

    def __init__(self) -> None:
        self.cells: dict[str, int] = {}
        self._peaks: dict[str, list[int]] = {}
        self._at: Any = None

    def measure(self, columns: Sequence[Column[R]], rows: Sequence[R], *, room: int, is_news: bool) -> None:
        """Look at these rows. Needs that grow count at once; those that shrink after more news, or if the room changes."""
        if room != self._at:
            self._at = room
            self.cells.clear()
            self._peaks.clear()
        for column in columns:
            if column.flex:
                self._hold(column.key, max((_needed(column, row) for row in rows), default=0), is_news=is_news)

    def _hold(self, key: str, cells: int, *, is_news: bool) -> None:
        if cells >= self.cells.get(key, 0):
            self.cells[key] = cells
            self._peaks.pop(key, None)
        elif is_news:
            peaks = self._peaks.setdefault(key, [])
            peaks.append(cells)
            if len(peaks) >= PATIENCE:
                self.cells[key] = max(self._peaks.pop(key))


def _needed(column: Column[R], row: R) -> int:
    """The cells of the text; of a text that depends on the width, those of its shortest form that is whole."""
    text = column.cell(row, column.width)
    return cell_len(column.cell(row, column.most) if column.drawn and (column.is_spelt_out or CUT in text) else text)
