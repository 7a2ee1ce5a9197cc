"""A failure as part of a row."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowError:
    """`name` is the text of the ERROR column, `message` a sentence for people."""

    name: str
    message: str

    def __str__(self) -> str:
        return self.name
