"""Fit a table to a narrow terminal: wrap sentences, shorten names, leave out the columns that matter least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len, chop_cells

from broker.light_named_tuples import NamedTuple
from kgctl.render.columns import RELUCTANTLY, Column, Fit, Layout
from kgctl.render.table import MISSING, Block, blocks, lines_of

# Least widths of a column that may be shortened or wrapped. Columns with a larger share (names) get as many times more.
READABLE, RECOGNISABLE = 20, 10


class Grid(NamedTuple):
    """One table, ready to print: for each column its declaration, its width and its lines, the header first."""

    columns: list[Column]
    widths: list[int]
    texts: list[list[str]]

    def text(self) -> str:
        return lines_of(self.texts, self.widths, cell_len)

    def without_header(self) -> Grid:
        return self._replace(texts=[texts[1:] for texts in self.texts])


class Fitted(NamedTuple):
    """`left_out`: the headers of columns that hold a value and are not shown; `shortened`: whether any name is."""

    grids: tuple[Grid, ...]
    left_out: tuple[str, ...] = ()
    shortened: bool = False

    @property
    def text(self) -> str:
        return "\n".join(grid.text() for grid in self.grids)


def fit(rows: Sequence[Any], layout: Layout, verbose: bool, limit: int, ellipsis: str = "\u2026") -> Fitted:
    """The table in `limit` columns, or as narrow as it gets; 0 is no limit.

    All blocks leave out the same columns. A table that fits keeps the widths of Kafka's tools.
    """
    found = list(blocks(rows, layout, verbose, cell_len))
    if not limit or all(block.aligned_width <= limit for block in found):
        return Fitted(tuple(Grid(block.columns, block.aligned_widths, block.texts) for block in found))
    brief = list(blocks(rows, layout, verbose, cell_len, brief=True))
    hollow = _hollow(found)
    for is_brief, floor, without in _ways(layout, hollow):
        chosen = brief if is_brief else found
        kept = [[n for n, column in enumerate(block.columns) if column.header not in without] for block in chosen]
        if all(_least_width(block, of, floor) <= limit for block, of in zip(chosen, kept, strict=True)):
            break
    grids, shortened = [], False
    for block, of in zip(chosen, kept, strict=True):
        widths = _widths(block, of, floor, limit)
        shortened = shortened or any(
            width < block.widths[n] and block.columns[n].fit is Fit.SHORTEN for n, width in zip(of, widths, strict=True)
        )
        cells = [
            [_cell_lines(block.columns[n], text, width, ellipsis) for text in block.texts[n]]
            for n, width in zip(of, widths, strict=True)
        ]
        grids.append(Grid([block.columns[n] for n in of], widths, _of_equal_height(cells)))
    headers = dict.fromkeys(column.header for block in found for column in block.columns)
    return Fitted(tuple(grids), tuple(header for header in headers if header in without - hollow), shortened)


def shorten(text: str, width: int, ellipsis: str) -> str:
    """The start and the end of a text: related names start alike, ids differ at their end."""
    if cell_len(text) <= width:
        return text
    room = width - len(ellipsis)
    end = _taken(text[::-1], room // 2)[::-1]
    return _taken(text, room - cell_len(end)) + ellipsis + end


def wrapped(text: str, width: int) -> list[str]:
    """The words of a text in lines of at most `width` columns; a word that is wider is broken."""
    lines = [""]
    for word in text.split():
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
            continue
        pieces = chop_cells(word, width)
        lines = [*(lines if lines[-1] else lines[:-1]), *pieces]
    return lines


def ellipsis_for(encoding: str) -> str:
    try:
        "\u2026".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "~"
    return "\u2026"


def _hollow(found: Sequence[Block]) -> frozenset[str]:
    """Columns that may be left out and have no value in any row: leaving them out loses nothing."""
    headers = {column.header for block in found for column in block.columns if column.rank is not None}
    full = {
        column.header
        for block in found
        for column, texts in zip(block.columns, block.texts, strict=True)
        if any(text != MISSING for text in texts[1:])
    }
    return frozenset(headers - full)


def _ways(layout: Layout, hollow: frozenset[str]) -> Iterator[tuple[bool, int, frozenset[str]]]:
    """From the best to the narrowest: whether values are brief, the least width of a name, the columns left out."""
    without, floor = hollow, READABLE
    yield False, floor, without
    yield True, floor, without
    for rank in sorted({column.rank for column in layout.columns if column.rank is not None}):
        if rank >= RELUCTANTLY and floor == READABLE:
            floor = RECOGNISABLE
            yield True, floor, without
        without = without.union(column.header for column in layout.columns if column.rank == rank)
        yield True, floor, without
    yield True, RECOGNISABLE, without


def _least(block: Block, number: int, floor: int) -> int:
    column, width = block.columns[number], block.widths[number]
    if column.fit is Fit.WHOLE:
        return width
    if floor == READABLE:
        floor *= column.share
    return min(width, max(len(column.header), floor))


def _least_width(block: Block, of: Sequence[int], floor: int) -> int:
    return sum(_least(block, number, floor) for number in of) + len(of) - 1


def _widths(block: Block, of: Sequence[int], floor: int, limit: int) -> list[int]:
    """The least widths, plus the spare columns given to those that want more, the narrowest first."""
    widths = [_least(block, number, floor) for number in of]
    spare = limit - sum(widths) - len(of) + 1
    while spare > 0:
        wanting = [place for place, number in enumerate(of) if widths[place] < block.widths[number]]
        if not wanting:
            break
        widths[min(wanting, key=lambda place: widths[place] / block.columns[of[place]].share)] += 1
        spare -= 1
    return widths


def _cell_lines(column: Column, text: str, width: int, ellipsis: str) -> list[str]:
    if column.fit is Fit.WRAP and cell_len(text) > width:
        return wrapped(text, width)
    return [shorten(text, width, ellipsis)]


def _of_equal_height(columns: list[list[list[str]]]) -> list[list[str]]:
    """Each row as the lines of its tallest cell, with empty lines where a cell has fewer."""
    heights = [max(map(len, row)) for row in zip(*columns, strict=True)]
    return [
        [line for cell, height in zip(column, heights, strict=True) for line in [*cell, *[""] * (height - len(cell))]]
        for column in columns
    ]


def _taken(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    taken = ""
    for char in text:
        if cell_len(taken + char) > width:
            break
        taken += char
    return taken
