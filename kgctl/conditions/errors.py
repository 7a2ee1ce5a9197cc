"""What is wrong with a condition, and where."""

from __future__ import annotations


class BadCondition(ValueError):
    """`column` counts from 1. The message has the condition and a caret below that column."""

    def __init__(self, reason: str, text: str, column: int) -> None:
        self.reason, self.column = reason, column
        line = "".join(" " if letter.isspace() else letter if letter.isprintable() else "?" for letter in text)
        super().__init__(f"{reason} (column {column})\n  {line}\n  {' ' * (column - 1)}^")
