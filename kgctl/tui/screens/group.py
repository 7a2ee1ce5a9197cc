"""One group, live."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from kgctl.model.watched import GroupLook
from kgctl.tui import cells
from kgctl.tui.screens.watching import Watching


class GroupScreen(Watching[GroupLook]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.pop_screen", "Back")]

    def __init__(self, group: str) -> None:
        super().__init__(cells.name(group))
        self.group = group
        self._told = False

    def contents(self) -> ComposeResult:
        yield Static("", markup=False)

    async def ask(self) -> GroupLook:
        return await self.kgctl.feed.look_at(self.group, anew=not self._told)

    def answered(self, answer: GroupLook) -> None:
        self._told = True
        self.query_one(Static).update(str(answer.group.state))
