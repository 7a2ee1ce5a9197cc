"""The middle of a dialog: inputs above the rows of the plan."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll


class Body(VerticalScroll, can_focus=False, inherit_bindings=False):
    """It scrolls with the focus; an arrow leads from an input to the rows."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("down", "to_rows", "To the rows", show=False)]

    def action_to_rows(self) -> None:
        self.query_one("#plan").focus()
