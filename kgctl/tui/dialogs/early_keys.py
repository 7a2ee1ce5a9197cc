"""Keys that come before a dialog that opens has the focus: what a fast typist or a paste sends."""

from __future__ import annotations

from textual import events
from textual.widget import Widget
from textual.widgets import Input


class EarlyKeys:
    """They are typed into the control that gets the focus first if it is an input; otherwise they are lost."""

    def __init__(self) -> None:
        self._kept: list[events.Key] = []
        self.are_over = False

    def take(self, event: events.Key) -> bool:
        """Whether the key is kept."""
        if self.are_over or not event.is_printable:
            return False
        self._kept.append(event)
        return True

    def give(self, widget: Widget) -> None:
        """The first control has the focus."""
        self.are_over = True
        if isinstance(widget, Input):
            for key in self._kept:
                widget.post_message(events.Key(key.key, key.character))
        self._kept.clear()
