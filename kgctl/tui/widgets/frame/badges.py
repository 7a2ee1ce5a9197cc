"""The colours of contexts, readable on every theme."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_named_tuples import NamedTuple


class Badge(NamedTuple):
    text: str
    filling: str

    @property
    def style(self) -> str:
        return f"{self.text} on {self.filling}"


BADGES: Mapping[str, Badge] = {
    "red": Badge("#ffffff", "#b3261e"),
    "green": Badge("#ffffff", "#2e7d32"),
    "yellow": Badge("#000000", "#e6b422"),
    "blue": Badge("#ffffff", "#1f5fa8"),
    "magenta": Badge("#ffffff", "#8e3a8e"),
    "cyan": Badge("#000000", "#35b5c4"),
    "white": Badge("#000000", "#f2f2f2"),
}
