"""The dialog that deletes groups with their committed offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from textual.widget import Widget

from kgctl.client.admin.admin import Admin
from kgctl.journal.making import of_deletions
from kgctl.model.changes import DONE, GroupChange
from kgctl.model.plans import StoredGroup
from kgctl.tui import cells, command_line
from kgctl.tui.dialogs import outcomes, rows
from kgctl.tui.dialogs.plan import READ_ONLY, PlanDialog, Stage
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.figures import counted

WARNING = "This deletes the group and all offsets that it has committed. U gives it its offsets back."
WARNING_BULK = "This deletes the groups and all offsets that they have committed. U gives them their offsets back."


class DeleteDialog(PlanDialog):
    NAME: ClassVar[str] = "Delete"
    ASKS_NAME: ClassVar[bool] = True
    WORKING: ClassVar[str] = "deleting"

    def __init__(self, feed: Feed, groups: str | Sequence[str], read_only: bool = False) -> None:
        super().__init__(feed, groups, read_only)
        self.plan: list[GroupChange] = []
        self._offsets: Mapping[str, int] = {}

    def form(self) -> Iterable[Widget]:
        return ()

    def table(self) -> Rows[GroupChange]:
        columns: list[Column[GroupChange]] = [
            Column("group", "GROUP", lambda row: cells.name(row.group), 16, flex=4, most=60),
            Column("state", "STATE", lambda row: cells.name(row.state), 10),
            Column("offsets", "OFFSETS", lambda row: cells.count(self._offsets.get(row.group)), 7, right=True),
            rows.status_column(
                lambda row: "deleted" if row.status == DONE else "will be deleted",
                lambda row: rows.style(row.status, row.error),
                failed=lambda row: rows.not_deleted(row, brief=not self.is_bulk),
            ),
        ]
        return Rows(columns, key=lambda row: row.group, empty="No plan.", id="plan")

    async def preview(self) -> None:
        groups = self.groups
        self.plan, self._offsets = await self.feed.ask(lambda admin: _plan(admin, groups))
        self.query_one("#plan", Rows).show(self.plan)
        good = self.changing()
        offsets = sum(self._offsets.get(name, 0) for name in good)
        if good:
            self.say_totals(f"{_of(len(good), len(self.plan))}, {counted(offsets, 'committed offset')}")
            self.say(READ_ONLY if self.read_only else WARNING_BULK if self.is_bulk else WARNING, "warning")
        else:
            self.say_totals("")
            why = f"None of the {len(self.plan):,} groups can be deleted."
            self.say(why if self.is_bulk else f"The group cannot be deleted: {rows.reason(self.plan[0])}", "error")
        self.enter(Stage.PLANNED)

    async def carry_out(self) -> None:
        plan, keeper = self.plan, self.keeper()
        names = outcomes.can_change(plan)
        done = await self.feed.ask(
            lambda admin: keeper.change_groups(
                admin,
                "delete",
                names,
                lambda states: of_deletions(plan, states),
                lambda: admin.delete_groups(plan),
            )
        )
        self.note_outcome([row for row in done if row.group in names])
        self.query_one("#plan", Rows).show(done)
        self.say(*outcomes.of_groups(done, "deleted"))
        self.say_totals("")
        self.enter(Stage.CHANGED)

    def changing(self) -> list[str]:
        return outcomes.can_change(self.plan)

    def is_futile(self) -> bool:
        return bool(self.plan) and not self.changing()

    def obstacle(self) -> str:
        return "" if self.changing() else "There is nothing to do."

    def verb(self) -> str:
        return "Delete groups" if self.is_bulk else "Delete group"

    def words(self) -> list[str]:
        return command_line.delete(self.feed.cluster, self.groups)

    def detail(self, row: GroupChange) -> str:
        return f"{row.group}: {rows.not_deleted(row)}" if row.error and self.is_bulk else ""


def _plan(admin: Admin, groups: tuple[str, ...]) -> tuple[list[GroupChange], dict[str, int]]:
    plan = admin.plan_group_deletion(groups)
    states = admin.group_states([row.group for row in plan if not row.error])
    return plan, {name: len(found.offsets) for name, found in states.items() if isinstance(found, StoredGroup)}


def _of(good: int, total: int) -> str:
    return counted(total, "group") if good == total else f"{good:,} of {total:,} groups can be deleted"
