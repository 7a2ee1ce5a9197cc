"""Numbers as Java reads and writes them."""

from __future__ import annotations

import math
import re

_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)")
_BLANKS = "".join(map(chr, range(33)))
# Java writes numbers outside of this range with an exponent.
_SMALLEST, _LARGEST = 1e-3, 1e7


def parse_double(text: str) -> float:
    """The number that Java's Double.parseDouble reads. Raises ValueError."""
    stripped = text.strip(_BLANKS)
    if not _DOUBLE.fullmatch(stripped):
        raise ValueError(text)
    is_word = stripped[-1] in "Ny"
    return float(stripped if is_word else stripped.rstrip("fFdD"))


def show_double(value: float) -> str:
    """The text of Java's Double.toString."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _SMALLEST <= abs(value) < _LARGEST:
        return repr(value)
    from decimal import Decimal

    # The digits of the shortest text that is this number.
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    power = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"
