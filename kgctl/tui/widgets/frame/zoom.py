"""Zooms a panel of a screen: it takes the place of all of them, also one that the size of the terminal leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from textual.screen import Screen
from textual.widget import Widget

from kgctl.tui.widgets.frame.panel import Panel


class Zoom:
    """`panel` is the zoomed panel, None without one. The style sheet below belongs to the app."""

    CSS = """
    .-zoomed-out { display: none !important; }
    .-zoomed { display: block !important; width: 1fr !important; height: 1fr !important; max-height: 100% !important; }
    """

    def __init__(self, screen: Screen[Any]) -> None:
        self._screen = screen
        self._focus: Widget | None = None
        self.panel: Panel | None = None

    def toggle(self, panel: Panel) -> None:
        """Zoom the panel, or show all panels again if it is zoomed already."""
        if self.panel is panel:
            self.leave()
            return
        if self.panel is None:
            self._focus = self._screen.focused
        else:
            self._end()
        self.panel = panel
        panel.is_zoomed = True
        self._show()
        inside = panel.first_focusable()
        # A panel without anything to move in gets the focus itself, for the key that leaves the zoom.
        panel.can_focus = inside is None
        self._screen.set_focus(inside or panel)

    def leave(self) -> None:
        """Show all panels, with the focus where it was before."""
        self._end()
        self.panel = None
        self._show()
        if self._focus is not None and self._focus.is_attached:
            self._screen.set_focus(self._focus)

    def _end(self) -> None:
        if self.panel is not None:
            self.panel.is_zoomed = self.panel.can_focus = False

    def _show(self) -> None:
        """Hide what neither contains the panel nor is in it."""
        inside = set(self.panel.ancestors_with_self) if self.panel is not None else set()
        for widget in self._widgets(self._screen.query_one("#contents")):
            widget.set_class(self.panel is not None and widget not in inside, "-zoomed-out")
            widget.set_class(widget in inside, "-zoomed")

    def _widgets(self, around: Widget) -> Iterator[Widget]:
        """The widgets around panels, the panels, and their siblings."""
        for child in around.children:
            yield child
            if not isinstance(child, Panel):
                yield from self._widgets(child)
