"""The keys that move a cursor over lines: arrows, vim's, pages. Who has them gives the actions move, page and go."""

from __future__ import annotations

from textual.binding import Binding, BindingType

MOVING: tuple[BindingType, ...] = (
    Binding("up,k", "move(-1)", "Up", show=False),
    Binding("down,j", "move(1)", "Down", show=False),
    Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False),
    Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False),
    Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False),
    Binding("ctrl+d", "page(0.5)", "Half a page down", show=False),
    Binding("home,g", "go(0)", "First", show=False),
    Binding("end,G", "go(-1)", "Last", show=False),
)
