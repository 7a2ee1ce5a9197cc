"""A series of numbers as one line of block characters: it shows the trend, not the values."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
LEVEL, GAP = BLOCKS[3], " "


def sparkline(values: Sequence[float | None], width: int) -> str:
    """Exactly `width` cells with the newest value in the last one; older values that do not fit are left out.

    The lowest block is 0 or less, the highest is the maximum of the visible values; None is a gap. A series that varies by
    less than one block is a level line, because a large lag that hardly moves must not look like a wall.
    """
    shown = list(values)[-width:] if width > 0 else []
    known = [max(value, 0) for value in shown if value is not None]
    top = max(known, default=0)
    is_level = bool(known) and (top - min(known)) * len(BLOCKS) < top
    return "".join(_block(value, top, is_level) for value in shown).rjust(max(0, width))


def _block(value: float | None, top: float, is_level: bool) -> str:
    if value is None:
        return GAP
    if value <= 0:
        return BLOCKS[0]
    if is_level:
        return LEVEL
    # Only the maximum is the highest block, and only zero is the lowest.
    return BLOCKS[1 + int((len(BLOCKS) - 2) * (value / top))]
