"""The dialog that deletes the committed offsets of topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Static

from kgctl.client.admin.reset_input import topic_partitions
from kgctl.client.admin.reset_targets import Scope
from kgctl.client.net.errors import BadValue
from kgctl.journal.making import of_offset_deletions
from kgctl.model.changes import DONE, OffsetChange
from kgctl.render.table import printable
from kgctl.tui import cells, command_line
from kgctl.tui.dialogs import outcomes, rows
from kgctl.tui.dialogs.plan import READ_ONLY, PlanDialog, Stage
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.figures import counted

TOPICS = "TOPIC TOPIC:0,2 ..."
NO_TOPIC = "Enter the topics whose committed offsets are to be deleted."
WARNING = "Consumers begin there as auto.offset.reset says. U gives the offsets back."


class DeleteOffsetsDialog(PlanDialog):
    """`topic` presets the scope."""

    NAME: ClassVar[str] = "Delete committed offsets of"
    ASKS_NAME: ClassVar[bool] = True
    WORKING: ClassVar[str] = "deleting offsets"

    def __init__(
        self, feed: Feed, groups: str | Sequence[str], topic: str | None = None, read_only: bool = False
    ) -> None:
        super().__init__(feed, groups, read_only)
        self.plan: list[OffsetChange] = []
        self._scope = "" if topic is None else printable(topic)

    def form(self) -> Iterable[Widget]:
        yield Horizontal(
            Static("Topics", classes="label"),
            Input(self._scope, placeholder=TOPICS, compact=True, select_on_focus=False, id="topics"),
            classes="line",
        )

    def table(self) -> Rows[OffsetChange]:
        columns: list[Column[OffsetChange]] = [
            *rows.group_column(self.is_bulk),
            Column("topic", "TOPIC", lambda row: cells.name(row.topic), catalogue.TOPIC_WIDTH, flex=3, most=40),
            catalogue.partition(lambda row: row.partition),
            Column("old", "COMMITTED", lambda row: cells.count(row.old_offset), 9, flex=1, most=12, right=True),
            rows.status_column(
                lambda row: "deleted" if row.status == DONE else "will be deleted",
                lambda row: rows.style(row.status, row.error),
                failed=rows.not_deleted,
            ),
        ]
        return Rows(columns, key=lambda row: f"{row.group}\0{row.topic}\0{row.partition}", empty="No plan.", id="plan")

    @property
    def topics(self) -> list[str]:
        return self.query_one("#topics", Input).value.split()

    @on(Input.Changed, "#topics")
    def _type(self, event: Input.Changed) -> None:
        event.stop()
        self.plan_again()

    @on(Input.Submitted, "#topics")
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self.plan_again(0.0)

    async def preview(self) -> None:
        self.plan = []
        if not self.topics:
            self.refuse(NO_TOPIC, kind="")
            return
        scope, groups = Scope(tuple(topic_partitions(text) for text in self.topics)), self.groups
        plan = await self.feed.ask(lambda admin: admin.plan_offset_deletions(groups, scope))
        self.plan = plan
        self.query_one("#plan", Rows).show(plan)
        errors = [row.error for row in plan if row.error]
        good = len(plan) - len(errors)
        self.say_totals(f"{counted(good, 'committed offset')} to delete" if good else "")
        if errors and not good:
            self.say("None of these committed offsets can be deleted.", "error")
        elif errors:
            self.say(f"{len(errors):,} of {counted(len(plan), 'committed offset')} cannot be deleted.", "error")
        else:
            self.say(READ_ONLY if self.read_only else WARNING, "warning")
        self.enter(Stage.PLANNED)

    async def carry_out(self) -> None:
        plan, keeper = self.plan, self.keeper()
        names = outcomes.can_change(plan)
        done = await self.feed.ask(
            lambda admin: keeper.change_groups(
                admin,
                "delete-offsets",
                names,
                lambda states: of_offset_deletions(plan, states),
                lambda: admin.delete_offsets(plan),
            )
        )
        tried = {(row.group, row.topic, row.partition) for row in plan if not row.error}
        self.note_outcome([row for row in done if (row.group, row.topic, row.partition) in tried])
        self.query_one("#plan", Rows).show(done)
        failed = [row.error for row in done if row.error]
        if failed:
            self.say(f"{len(failed):,} of {len(done):,} failed: {outcomes.ended(failed[0].message)}", "error")
        else:
            self.say(f"Done: {counted(len(done), 'committed offset')} deleted.", "good")
        self.say_totals("")
        self.enter(Stage.CHANGED)

    def changing(self) -> list[str]:
        return outcomes.can_change(self.plan)

    def is_futile(self) -> bool:
        return bool(self.plan) and not self.changing()

    def obstacle(self) -> str:
        return "" if self.changing() else "There is nothing to do."

    def verb(self) -> str:
        return "Delete offsets"

    def words(self) -> list[str]:
        try:
            for text in self.topics:
                topic_partitions(text)
        except BadValue:
            return []
        return command_line.delete_offsets(self.feed.cluster, self.groups, self.topics) if self.topics else []

    def detail(self, row: OffsetChange) -> str:
        return f"{row.topic or row.group}: {rows.not_deleted(row)}" if row.error else ""
