"""The glyphs of the dashboard. Each is one cell wide and has an ASCII form, which replaces it in ASCII mode."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from unicodedata import normalize

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

FAULT, WARNING, MOVING, GOOD, UNUSED, DOUBTFUL = "\u2716", "\u25b2", "\u21bb", "\u25cf", "\u25cb", "?"
JUDGING = "\u25cc"
MARK, FOCUS, LEADER, PAUSED = "\u25c6", "\u25b8", "\u2605", "\u2016"
SEPARATOR, PATH, ELLIPSIS, RISING, FALLING = "\u00b7", "\u203a", "\u2026", "\u2191", "\u2193"
DASH, RIGHT, DOWN, LEFT, UP = "\u2500", "\u25b6", "\u25bc", "\u25c0", "\u25b4"
DOUBLE, CORNER, CORNER_LIT = "\u2550", "\u256f", "\u255d"
GAINED, LOST = "\u25b3", "\u25bd"
FULL, SHADE, HALF = "\u2588", "\u2591", "\u2592"
BLOCKS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
NUMBERS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"

ASCII: Mapping[str, str] = {
    FAULT: "X",
    WARNING: "!",
    MOVING: "~",
    GOOD: "*",
    UNUSED: "o",
    JUDGING: ".",
    MARK: "+",
    FOCUS: ">",
    LEADER: "*",
    PAUSED: "=",
    SEPARATOR: "|",
    PATH: ">",
    ELLIPSIS: "~",
    RISING: "^",
    FALLING: "v",
    RIGHT: ">",
    DOWN: "v",
    LEFT: "<",
    UP: "^",
    SHADE: ".",
    HALF: ":",
    **dict(zip(BLOCKS, "_.-:=+*#", strict=True)),
    **dict(zip(NUMBERS, "0123456789", strict=True)),
    # Frames, arrows, lines
    **dict.fromkeys("\u2500\u2501\u2508\u2509\u254c\u254d", "-"),
    **dict.fromkeys("\u2502\u2503\u2551\u250a\u250b\u254e\u254f", "|"),
    **dict.fromkeys("\u256d\u256e\u256f\u2570\u250c\u2510\u2514\u2518\u251c\u2524\u252c\u2534\u253c", "+"),
    DOUBLE: "=",
    CORNER_LIT: "+",
    "\u2190": "<",
    "\u2192": ">",
    "\u25b7": ">",
    "\u25c1": "<",
    "\u25b3": "^",
    "\u25bd": "v",
    "\u25b5": "^",
    "\u25bf": "v",
    "\u25c7": "+",
    # Signs and marks
    "\u25a0": "#",
    "\u25a1": ".",
    "\u25d0": "o",
    "\u25d1": "o",
    "\u25d2": "o",
    "\u25d3": "o",
    "\u2713": "v",
    "\u2717": "x",
    "\u26a0": "!",
    "\u2264": "<",
    "\u00d7": "x",
    "\u2212": "-",
    "\u2013": "-",
    "\u2014": "-",
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    # What scrollbars are drawn with
    "\u2594": "-",
    "\u258e": "|",
    "\u258a": "|",
    "\u2580": "-",
    "\u258c": "|",
    "\u2590": "|",
    # Waves of a widget that is loading
    "\u2022": "*",
}


class AsciiOnly(LineFilter):
    """Replaces every other character. It works on rendered lines, so widgets do not deal with it."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.text.isascii() else Segment(in_ascii(segment.text), segment.style, segment.control)
            for segment in segments
        ]


@lru_cache(4096)
def in_ascii(text: str) -> str:
    """The text with the same width: glyphs in their ASCII form, letters without accents, `?` for anything else."""
    found = []
    for character in text:
        if character.isascii():
            found.append(character)
        elif character in ASCII:
            found.append(ASCII[character])
        else:
            width, base = cell_len(character), normalize("NFKD", character)[0]
            found.append(base if width == 1 and base.isascii() else "?" * width)
    return set_cell_size("".join(found), cell_len(text))
