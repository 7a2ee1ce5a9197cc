"""Panels side by side, as many as the width has room for."""

from __future__ import annotations

from textual import events
from textual.containers import Horizontal

from kgctl.tui.widgets.frame.panel import Panel


class Shelf(Horizontal):
    """The first panels stay; the last ones are left out where their least widths do not fit."""

    DEFAULT_CSS = """
    Shelf { height: auto; }
    Shelf Panel { width: 1fr; }
    Shelf Panel.-no-room { display: none; }
    """

    def on_resize(self, event: events.Resize) -> None:
        room = event.size.width
        for place, panel in enumerate(self.query_children(Panel)):
            room -= panel.least[0]
            panel.set_class(place > 0 and room < 0, "-no-room")
