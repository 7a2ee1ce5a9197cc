"""Counts of what members name: topics, expressions, assignors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")


def count(counts: dict[K, int], keys: Iterable[K], change: int) -> None:
    """Add to the counts of these keys; a key whose count is 0 is left out."""
    for key in keys:
        found = counts.get(key, 0) + change
        if found > 0:
            counts[key] = found
        else:
            counts.pop(key, None)
