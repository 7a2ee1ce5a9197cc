"""Plain tables of fixed columns, safe to print whatever the names in them are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from kgctl.render.layouts import Layout

MISSING = "-"


def table(rows: Sequence[Any], layout: Layout, verbose: bool = False) -> str:
    """The text of a table, ending in a newline; without rows, the header alone."""
    blocks: Iterator[Sequence[Any]] = iter([rows])
    if layout.block and rows:
        name = layout.block
        blocks = (list(block) for _, block in groupby(rows, key=lambda row: getattr(row, name)))
    return "\n".join(_block(block, layout, verbose) for block in blocks)


def _block(rows: Sequence[Any], layout: Layout, verbose: bool) -> str:
    columns = [column for column in layout.columns if column.is_shown(rows, verbose)]
    lines = [[column.header for column in columns], *([cell(column.of(row)) for column in columns] for row in rows)]
    widths = [max(column.width, *(width_of(line[index]) for line in lines)) for index, column in enumerate(columns)]
    if widths:
        widths[0] += layout.slack
    text = (
        " ".join(_padded(value, width) for value, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
    return "".join(line + "\n" for line in text)


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes: characters of Chinese, Japanese and Korean take two."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


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
