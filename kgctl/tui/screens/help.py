"""Which keys do what, made from the bindings themselves."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen
from textual.widgets import Static


class HelpScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark", "app.pop_screen", "Back")]

    def __init__(self, of: Screen[Any]) -> None:
        super().__init__()
        self._of = of

    def compose(self) -> ComposeResult:
        yield Static("help")
