"""The colours of the page and the charts, for light and dark.

Lag goes from pale to deep in one hue; causes have Okabe and Ito's colours, and Tol's indigo. Colour-blind readers can distinguish both.
"""

from __future__ import annotations

from collections.abc import Mapping

LAG_FLOORS = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
LAG_LABELS = ("none", "1-9", "10-99", "100-999", "1,000s", "10,000s", "100,000s", "millions")
LAG = tuple(f"lag{number}" for number in range(len(LAG_FLOORS)))
CAUSES = {
    "member joined": "joined",
    "member left": "left",
    "session timed out": "session",
    "sync timed out": "sync",
    "rebalance timed out": "timeout",
    "subscription changed": "subscription",
    "topics changed": "topics",
    "member left or timed out": "left",
    "requested by an admin": "admin",
    "group deleted": "deleted",
}
OTHER_CAUSE = "other cause", "other"
NO_CAUSE = "unknown cause", "unknown"

_CAUSE_COLOURS = {
    "joined": "#0072b2",
    "left": "#e69f00",
    "session": "#d55e00",
    "sync": "#cc79a7",
    "timeout": "#8c510a",
    "subscription": "#009e73",
    "topics": "#332288",
    "admin": "#56b4e9",
    "deleted": "#5c5c5c",
    "other": "#f0e442",
    "unknown": "#a6a6a6",
}
LIGHT = {
    "ink": "#1b1f24",
    "soft": "#59626d",
    "rule": "#d5dae0",
    "page": "#ffffff",
    "link": "#11497f",
    **dict(
        zip(LAG, ("#e9f0f6", "#c6daeb", "#9cc1df", "#6ca3cf", "#4183ba", "#25659e", "#11497f", "#05294f"), strict=True)
    ),
    **_CAUSE_COLOURS,
}
DARK = {
    "ink": "#e6e9ed",
    "soft": "#a3adb8",
    "rule": "#3a424c",
    "page": "#14181d",
    "link": "#86b7e1",
    **dict(
        zip(LAG, ("#1e2732", "#23415e", "#2b5a86", "#3a78ad", "#5998cd", "#86b7e1", "#b5d4f1", "#eaf4fd"), strict=True)
    ),
    **_CAUSE_COLOURS,
    "joined": "#2380c4",
    "admin": "#9bd7fa",
    "topics": "#8577d9",
    "timeout": "#b9793a",
    "deleted": "#8a8a8a",
    "unknown": "#737b84",
}


def css(colours: Mapping[str, str]) -> str:
    """The colours as CSS variables."""
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def cause_colour(cause: str | None) -> tuple[str, str]:
    """The label in the legend and the name of the colour."""
    if cause is None:
        return NO_CAUSE
    return (cause, CAUSES[cause]) if cause in CAUSES else OTHER_CAUSE
