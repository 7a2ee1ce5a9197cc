"""A series of numbers as an area of several lines, and a series fitted to a number of cells."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.tui.widgets.frame.glyphs import BLOCKS

STEPS = len(BLOCKS)


def fitted(values: Sequence[float | None], width: int) -> tuple[float | None, ...]:
    """The newest part of the series from its first known value, in exactly `width` values: a mean of several where it is longer."""
    first = next((place for place, value in enumerate(values) if value is not None), len(values))
    known = values[first:]
    if width <= 0 or len(known) <= width:
        return (None,) * max(0, width - len(known)) + tuple(known)
    ends = [len(known) * (place + 1) // width for place in range(width)]
    return tuple(_mean(known[begin:end]) for begin, end in zip([0, *ends], ends, strict=False))


def area(heights: Sequence[float | None], lines: int) -> list[str]:
    """Heights from 0 to 1 as columns of blocks, the top line first. Every known value shows at least the lowest block."""
    filled = [
        None if height is None else max(1, round(min(max(height, 0.0), 1.0) * lines * STEPS)) for height in heights
    ]
    return ["".join(_block(one, line * STEPS) for one in filled) for line in reversed(range(lines))]


def _block(filled: int | None, below: int) -> str:
    if filled is None or filled <= below:
        return " "
    return BLOCKS[min(filled - below, STEPS) - 1]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
