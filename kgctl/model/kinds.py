"""A row about the kinds of answers."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KindRow:
    """A kind of answer, and the keys of its rows."""

    kind: str
    keys: tuple[str, ...]
