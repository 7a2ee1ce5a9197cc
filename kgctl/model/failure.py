"""A failure as part of a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowError:
    """`name` stands in the ERROR column, `message` is the sentence for people, `exit_code` what it means for a script."""

    name: str
    message: str
    exit_code: int = 1

    def __str__(self) -> str:
        return self.name
