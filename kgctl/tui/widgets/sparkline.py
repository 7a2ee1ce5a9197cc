"""A series of numbers as one line of text: how it went, not how much it was."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
LEVEL, GAP = BLOCKS[3], " "


def sparkline(values: Sequence[float | None], width: int) -> str:
    """Exactly `width` cells, the newest value in the last one; older ones that do not fit are left out.

    The lowest block is 0 or less, the highest the greatest value that is seen; None is a gap. A series whose values differ
    by less than one block is a level line, so that a large lag that hardly moves does not look like a wall.
    """
    seen = list(values)[-width:] if width > 0 else []
    known = [max(value, 0) for value in seen if value is not None]
    top = max(known, default=0)
    is_level = bool(known) and (top - min(known)) * len(BLOCKS) < top
    return "".join(_block(value, top, is_level) for value in seen).rjust(max(0, width))


def _block(value: float | None, top: float, is_level: bool) -> str:
    if value is None:
        return GAP
    if value <= 0:
        return BLOCKS[0]
    if is_level:
        return LEVEL
    # Only the top itself is the highest block, and only nothing is the lowest.
    return BLOCKS[1 + int((len(BLOCKS) - 2) * (value / top))]
