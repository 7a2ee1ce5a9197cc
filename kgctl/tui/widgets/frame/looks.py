"""How verdicts look: a glyph and a colour each, the same on every screen. The glyph alone says what the colour says."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from broker.light_named_tuples import NamedTuple
from kgctl.model.health import Health
from kgctl.tui.widgets.frame import glyphs

# The styles of cells in tables, and what they are called in texts.
COLOURS: Mapping[str, str] = {
    "bad": "bold $text-error",
    "warn": "$text-warning",
    "good": "$text-success",
    "dim": "$text-muted",
    "strong": "bold",
    "": "",
}


class Look(NamedTuple):
    """`style` is one of Rows.STYLES; COLOURS has the same as the style of a text."""

    glyph: str
    style: str

    @property
    def colour(self) -> str:
        return COLOURS[self.style]


JUDGING = Look(glyphs.JUDGING, "dim")
LOOKS: Mapping[Health, Look] = {
    Health.UNKNOWN: Look(glyphs.DOUBTFUL, "bad"),
    Health.SILENT: Look(glyphs.FAULT, "bad"),
    Health.STALLED: Look(glyphs.FAULT, "bad"),
    Health.NEVER_COMMITTED: Look(glyphs.FAULT, "bad"),
    Health.STOPPED: Look(glyphs.FAULT, "bad"),
    Health.REWOUND: Look(glyphs.WARNING, "warn"),
    Health.LAGGING: Look(glyphs.WARNING, "warn"),
    Health.REBALANCING: Look(glyphs.MOVING, "warn"),
    Health.OK: Look(glyphs.GOOD, "good"),
    Health.UNUSED: Look(glyphs.UNUSED, "dim"),
}


def look(health: Health | None) -> Look:
    """The look of a verdict; None while there is none."""
    return JUDGING if health is None else LOOKS[health]


def verdict(health: Health | None) -> Content:
    """The glyph and the word of a verdict in its colour."""
    found = look(health)
    return Content.styled(f"{found.glyph} {health or 'judging'}", found.colour)
