"""Estimates how wide a text is, on the safe side: the reader's font is not known."""

from __future__ import annotations

from kgctl.render.fitting import shorten
from kgctl.render.table import width_of

ELLIPSIS = "\u2026"
# In ems, for the widest of the usual fonts (DejaVu Sans, Verdana).
_NARROW, _WIDE = frozenset("iIjlrtf.,:;'|!()[] -"), frozenset("mMW@%&w")
_NARROW_EM, _WIDE_EM, _UPPER_EM, _LOWER_EM = 0.46, 1.0, 0.8, 0.66
_FOREIGN_EM, _DOUBLE_EM = 0.9, 1.1


def text_width(text: str, font_px: float) -> float:
    return sum(map(_em, text)) * font_px


def fitting(text: str, width_px: float, font_px: float) -> str:
    """The text, or as much of its start and end as fits."""
    if text_width(text, font_px) <= width_px:
        return text
    for columns in range(width_of(text) - 1, 0, -1):
        short = shorten(text, columns, ELLIPSIS)
        if text_width(short, font_px) <= width_px:
            return short
    return ELLIPSIS


def _em(char: str) -> float:
    if char in _NARROW:
        return _NARROW_EM
    if char in _WIDE:
        return _WIDE_EM
    if char.isascii():
        return _UPPER_EM if char.isupper() else _LOWER_EM
    return _DOUBLE_EM if width_of(char) > 1 else _FOREIGN_EM
