"""The line below the header in a replay."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from kgctl.tui import cells


class ReplayBar(Static):
    DEFAULT_CSS = """
    ReplayBar { height: 1; padding: 0 1; background: $accent; color: $surface; text-style: bold; text-wrap: nowrap; }
    """

    def show(self, text: str) -> None:
        self.update(Content(cells.name(text)))
