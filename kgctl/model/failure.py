"""A failure as part of a row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowError:
    """`name` is the text of the ERROR column, `message` a sentence for people, `exit_code` the code for scripts."""

    name: str
    message: str
    exit_code: int = 1

    def __str__(self) -> str:
        return self.name
