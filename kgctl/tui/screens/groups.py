"""All groups: one row each."""

from __future__ import annotations

from textual.app import ComposeResult

from kgctl.model.groups import GroupDescription
from kgctl.model.watched import Look
from kgctl.tui import cells
from kgctl.tui.screens.watching import Watching
from kgctl.tui.widgets.columns import Column
from kgctl.tui.widgets.rows import Rows


class GroupsScreen(Watching[Look]):
    def __init__(self) -> None:
        super().__init__("Groups")

    def contents(self) -> ComposeResult:
        yield Rows[GroupDescription](
            [Column("group", "GROUP", lambda row: cells.name(row.group), 20, flex=1, most=60)],
            key=lambda row: row.group,
            empty="No groups.",
        )

    async def ask(self) -> Look:
        return await self.kgctl.feed.look()

    def answered(self, answer: Look) -> None:
        self.query_one(Rows).show(list(answer.groups.values()))

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.kgctl.open_group(event.row.group)
