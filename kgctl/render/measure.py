"""A measured value in a cell: shown as a text, sorted by size."""

from __future__ import annotations


class Measure(float):
    """For example 0.5 as "30s"."""

    text: str

    def __new__(cls, size: float, text: str) -> Measure:
        made = super().__new__(cls, size)
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text
