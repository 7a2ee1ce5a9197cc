"""Tables for a terminal that is too narrow for them: sentences wrapped, names shortened, the least telling columns left out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kgctl.render.table import MISSING, Block, lines_of, width_of

# By header, whatever the table. First to go: what a person reads least, or can work out from the columns that stay.
EXPENDABLE = (
    "CLIENT-ID",
    "HOST",
    "TYPE",
    "RECORDS",
    "SOURCE",
    "COMPLETE-MS",
    "PREPARE-MS",
    "REJECTED",
    "MOVED",
    "REPLICAS",
    "ASSIGNMENT-STRATEGY",
)
DEARER = (
    "LEADER-EPOCH",
    "STABLE-AFTER-MS",
    "HEARTBEAT-AGE-MS",
    "TARGET-ASSIGNMENT",
    "TARGET-ASSIGNMENT-EPOCH",
    "TARGET-EPOCH",
    "CURRENT-EPOCH",
    "GROUP-EPOCH",
    "WHO-WAS-ABSENT",
    "WHO-LEFT",
    "WHO-JOINED",
    "LEFT-BECAUSE",
    "ABSENT",
    "JOINED",
    "COORDINATOR (ID)",
    "CONSUMER-ID",
)
# Names, lists and sentences say something with a part missing. Numbers, states and times do not.
SHORTENED = {
    "GROUP",
    "TOPIC",
    "CONSUMER-ID",
    "GROUP-INSTANCE-ID",
    "HOST",
    "CLIENT-ID",
    "COORDINATOR (ID)",
    "ASSIGNMENT-STRATEGY",
    "CURRENT-ASSIGNMENT",
    "TARGET-ASSIGNMENT",
    "CAUSE",
    "LEFT-BECAUSE",
    "WHO-JOINED",
    "WHO-LEFT",
    "WHO-WAS-ABSENT",
    "CONFIG",
    "VALUE",
    "NOTE",
    "ERROR",
}
# Sentences of ours go on in the next line.
WRAPPED = {"SUMMARY", "READS", "WRITES", "MEANING", "FOUND", "ADVICE"}
# What people copy: readable at twice the width, and of the room that is left over they get twice as much.
FIRST = {"GROUP", "TOPIC"}
READABLE, RECOGNISABLE = 20, 10


class Fitted(NamedTuple):
    """`left_out`: the headers of columns that hold something and are not shown; `shortened`: whether a text is."""

    text: str
    left_out: tuple[str, ...] = ()
    shortened: bool = False


def fit(blocks: Sequence[Block], limit: int, ellipsis: str = "\u2026") -> Fitted:
    """The blocks in `limit` columns, all with the same ones left out. What cannot be made to fit is as narrow as it gets."""
    hollow = _hollow(blocks)
    for floor, without in _ways(hollow):
        kept = [[number for number, column in enumerate(b.columns) if column.header not in without] for b in blocks]
        if all(_least_width(block, of, floor) <= limit for block, of in zip(blocks, kept, strict=True)):
            break
    texts, shortened = [], False
    for block, of in zip(blocks, kept, strict=True):
        widths = _widths(block, of, floor, limit)
        shortened = shortened or any(
            width < block.widths[number] and block.columns[number].header not in WRAPPED
            for number, width in zip(of, widths, strict=True)
        )
        columns = [
            [_cell_lines(block.columns[number].header, text, width, ellipsis) for text in block.texts[number]]
            for number, width in zip(of, widths, strict=True)
        ]
        texts.append(lines_of(_of_equal_height(columns), widths))
    there = dict.fromkeys(column.header for block in blocks for column in block.columns)
    return Fitted("\n".join(texts), tuple(header for header in there if header in without - hollow), shortened)


def ellipsis_for(encoding: str) -> str:
    try:
        "\u2026".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "~"
    return "\u2026"


def _cell_lines(header: str, text: str, width: int, ellipsis: str) -> list[str]:
    if header in WRAPPED and width_of(text) > width:
        return textwrap.wrap(text, width, break_on_hyphens=False)
    return [shorten(text, width, ellipsis)]


def _of_equal_height(columns: list[list[list[str]]]) -> list[list[str]]:
    """Rows of several lines as so many lines, empty where a cell has fewer."""
    heights = [max(map(len, row)) for row in zip(*columns, strict=True)]
    return [
        [line for cell, height in zip(column, heights, strict=True) for line in [*cell, *[""] * (height - len(cell))]]
        for column in columns
    ]


def _hollow(blocks: Sequence[Block]) -> frozenset[str]:
    """Columns in which no row has anything, and which nobody misses."""
    full = {
        column.header
        for block in blocks
        for column, texts in zip(block.columns, block.texts, strict=True)
        if any(text != MISSING for text in texts[1:])
    }
    return frozenset(EXPENDABLE + DEARER) - full


def _ways(hollow: frozenset[str]) -> Iterator[tuple[int, frozenset[str]]]:
    """From the best to the narrowest: the least width of a shortened column, and the columns that are left out."""
    yield READABLE, frozenset()
    for count in range(len(EXPENDABLE) + 1):
        yield READABLE, hollow.union(EXPENDABLE[:count])
    for count in range(len(DEARER) + 1):
        yield RECOGNISABLE, hollow.union(EXPENDABLE, DEARER[:count])


def _least(block: Block, number: int, floor: int) -> int:
    header, width = block.columns[number].header, block.widths[number]
    if floor == READABLE and header in FIRST:
        floor *= 2
    return min(width, max(len(header), floor)) if header in SHORTENED | WRAPPED else width


def _least_width(block: Block, of: Sequence[int], floor: int) -> int:
    return sum(_least(block, number, floor) for number in of) + len(of) - 1


def _widths(block: Block, of: Sequence[int], floor: int, limit: int) -> list[int]:
    """The least widths, and what is left over given to those that want more, the narrowest first."""
    widths = [_least(block, number, floor) for number in of]
    shares = [2 if block.columns[number].header in FIRST else 1 for number in of]
    over = limit - sum(widths) - len(of) + 1
    while over > 0:
        wanting = [place for place, number in enumerate(of) if widths[place] < block.widths[number]]
        if not wanting:
            break
        widths[min(wanting, key=lambda place: widths[place] / shares[place])] += 1
        over -= 1
    return widths


def shorten(text: str, width: int, ellipsis: str) -> str:
    """Its start and its end: names that belong together start alike, ids differ to their end."""
    if width_of(text) <= width:
        return text
    room = width - len(ellipsis)
    end = _taken(text[::-1], room // 2)[::-1]
    return _taken(text, room - width_of(end)) + ellipsis + end


def _taken(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    taken = ""
    for char in text:
        if width_of(taken + char) > width:
            break
        taken += char
    return taken
