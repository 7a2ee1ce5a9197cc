"""Plain tables of fixed columns, safe to print whatever the names in them are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from kgctl.render.layouts import Column, Layout

MISSING = "-"


def table(rows: Sequence[Any], layout: Layout, verbose: bool = False) -> str:
    """The text of a table, ending in a newline; without rows, the header alone."""
    return "\n".join(aligned(block) for block in blocks(rows, layout, verbose))


class Block:
    """What stands under one header: the columns that are shown, and of each the header and the cells as text."""

    def __init__(self, rows: Sequence[Any], layout: Layout, verbose: bool) -> None:
        self.columns: list[Column] = [column for column in layout.columns if column.is_shown(rows, verbose)]
        self.texts = [[column.header, *(cell(column.of(row)) for row in rows)] for column in self.columns]
        self.widths = [_widest(texts) for texts in self.texts]
        self.aligned_widths = [max(c.width, width) for c, width in zip(self.columns, self.widths, strict=True)]
        if self.columns:
            self.aligned_widths[0] += layout.slack

    @property
    def aligned_width(self) -> int:
        """How many columns of a terminal its widest line takes: nothing follows the text of the last column."""
        return sum(self.aligned_widths[:-1]) + len(self.columns) - 1 + self.widths[-1] if self.columns else 0


def blocks(rows: Sequence[Any], layout: Layout, verbose: bool) -> Iterator[Block]:
    """The tables of an answer: one, or one for each value of the field that starts a new one."""
    if not (layout.block and rows):
        yield Block(rows, layout, verbose)
        return
    name = layout.block
    for _, block in groupby(rows, key=lambda row: getattr(row, name)):
        yield Block(list(block), layout, verbose)


def aligned(block: Block) -> str:
    """The text of a block with the least widths of its columns."""
    return lines_of(block.texts, block.aligned_widths)


def lines_of(texts: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """Columns of text side by side, a space between them and none at the end of a line."""
    columns = [_padded(column, width) for column, width in zip(texts, widths, strict=True)]
    return "".join([" ".join(line).rstrip() + "\n" for line in zip(*columns, strict=True)])


def _widest(texts: Sequence[str]) -> int:
    return max(map(len, texts)) if "".join(texts).isascii() else max(map(width_of, texts))


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes: characters of Chinese, Japanese and Korean take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def _padded(texts: Sequence[str], width: int) -> list[str]:
    return [text.ljust(width) if text.isascii() else text + " " * (width - width_of(text)) for text in texts]


def cell(value: Any) -> str:
    """A value as text on one line; what a terminal would take for a command is spelled out."""
    if value is None or value == "" or value == ():
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ";".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return printable(text)


def printable(text: str) -> str:
    """Escape sequences, line ends, direction marks and the like as \\x1b, \\n, \\u202e."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
