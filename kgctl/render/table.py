"""Plain tables with Kafka's column widths, safe to print whatever the names in them are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from kgctl.render.columns import Column, Layout

MISSING = "-"
Measure = Callable[[str], int]


def table(rows: Sequence[Any], layout: Layout, verbose: bool = False, *, headers: bool = True) -> str:
    """The text of a table, ending in a newline; without rows, the header alone."""
    return "\n".join(aligned(block, headers=headers) for block in blocks(rows, layout, verbose))


def width_of(text: str) -> int:
    """Columns that the text takes on a terminal: Chinese, Japanese and Korean characters take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


class Block:
    """The rows under one header: the columns shown and, for each, the header and the cells as text."""

    def __init__(
        self, rows: Sequence[Any], layout: Layout, verbose: bool, measure: Measure = width_of, *, brief: bool = False
    ) -> None:
        self.columns: list[Column] = [column for column in layout.columns if column.is_shown(rows, verbose)]
        self.texts = [[column.header, *(cell(column.of(row, brief=brief)) for row in rows)] for column in self.columns]
        self.widths = [_widest(texts, measure) for texts in self.texts]
        self.aligned_widths = [max(c.width, width) for c, width in zip(self.columns, self.widths, strict=True)]
        if self.columns:
            self.aligned_widths[0] += layout.slack

    @property
    def aligned_width(self) -> int:
        """Width of the longest line; nothing follows the text of the last column."""
        return sum(self.aligned_widths[:-1]) + len(self.columns) - 1 + self.widths[-1] if self.columns else 0


def blocks(
    rows: Sequence[Any], layout: Layout, verbose: bool, measure: Measure = width_of, *, brief: bool = False
) -> Iterator[Block]:
    """One block, or one for each run of rows with the same value in the layout's `block` field."""
    if not (layout.block and rows):
        yield Block(rows, layout, verbose, measure, brief=brief)
        return
    name = layout.block
    for _, some in groupby(rows, key=lambda row: getattr(row, name)):
        yield Block(list(some), layout, verbose, measure, brief=brief)


def aligned(block: Block, *, headers: bool = True) -> str:
    """The text of a block with the least widths of its columns."""
    return lines_of(block.texts if headers else [texts[1:] for texts in block.texts], block.aligned_widths)


def lines_of(texts: Sequence[Sequence[str]], widths: Sequence[int], measure: Measure = width_of) -> str:
    """Columns of text side by side, separated by a space, without trailing spaces."""
    columns = [_padded(column, width, measure) for column, width in zip(texts, widths, strict=True)]
    return "".join([" ".join(line).rstrip() + "\n" for line in zip(*columns, strict=True)])


def cell(value: Any) -> str:
    """A value as text on one line, with control characters spelled out."""
    if value is None or value == "" or value == ():
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ";".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return printable(text)


def printable(text: str) -> str:
    """The text with control characters, line ends and direction marks as \\x1b, \\n, \\u202e."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def one_line(text: str, *, escaped: bool) -> str:
    """The text with line ends as \\n; `escaped` spells out all control characters, as a terminal needs it."""
    if escaped or len(text.splitlines()) > 1 or text.endswith(("\n", "\r")):
        return printable(text)
    return text


def _widest(texts: Sequence[str], measure: Measure) -> int:
    return max(map(len, texts)) if "".join(texts).isascii() else max(map(measure, texts))


def _padded(texts: Sequence[str], width: int, measure: Measure) -> list[str]:
    return [text.ljust(width) if text.isascii() else text + " " * (width - measure(text)) for text in texts]
