"""The dialog that removes one member of a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Static

from kgctl.client.admin.admin import Admin
from kgctl.model.changes import DONE, MemberChange
from kgctl.model.groups import GroupDescription
from kgctl.render.table import printable
from kgctl.tui import command_line
from kgctl.tui.dialogs.plan import PlanDialog, Stage, ended
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.figures import counted

DYNAMIC = "The group rebalances. If the consumer is still running, it rejoins with a new member id."
STATIC = "The group rebalances. If the consumer is still running, it rejoins with the same instance id."


class RemoveMemberDialog(PlanDialog):
    """The dialog removes the member under the cursor; `member_id` or `instance` is where the cursor starts."""

    AUTO_FOCUS: ClassVar[str | None] = "#plan"
    NAME: ClassVar[str] = "Remove a member of group"
    WORKING: ClassVar[str] = "removing the member and reading the group back"

    def __init__(
        self,
        feed: Feed,
        group: str,
        member_id: str | None = None,
        instance: str | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(feed, group, read_only)
        self._wanted = (member_id, instance)
        self._is_first = True
        self._missing = ""

    # ---- inputs

    def form(self) -> Iterable[Widget]:
        yield Horizontal(
            Static("Reason", classes="label"),
            Input(placeholder="optional; recorded in the broker's log", compact=True, id="reason"),
            classes="line",
        )

    def table(self) -> Rows[MemberChange]:
        columns: list[Column[MemberChange]] = [
            catalogue.consumer_id(lambda row: row.consumer_id),
            catalogue.instance(lambda row: row.group_instance_id),
            catalogue.client_id(lambda row: row.client_id),
            catalogue.host(lambda row: row.host),
            Column("status", "STATUS", self._status, 10, flex=1, style=_status_style),
        ]
        return Rows(columns, key=_key, empty="No members.", id="plan")

    @property
    def reason(self) -> str:
        return self.query_one("#reason", Input).value.strip()

    @property
    def selected(self) -> MemberChange | None:
        row: MemberChange | None = self.query_one("#plan", Rows).cursor_row
        return row

    @on(Input.Changed, "#reason")
    def _type(self, event: Input.Changed) -> None:
        event.stop()
        self.show_state()

    @on(Input.Submitted, "#reason")
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self.focus_next()

    @on(Rows.Moved)
    def _select(self, event: Rows.Moved) -> None:
        if self.stage is Stage.PLANNED:
            self._say_selection()
        self.show_state()

    # ---- plan and execution

    async def preview(self) -> None:
        group = self.group
        rows = await self.feed.ask(lambda admin: admin.plan_member_removal(group, everyone=True))
        table = self.query_one("#plan", Rows)
        table.show(rows)
        self._missing = self._preselect(rows)
        self.say_totals(counted(len(rows), "member"))
        if not rows:
            self.refuse("The group has no active members.", "warning")
            return
        self.enter(Stage.PLANNED)
        self._say_selection()

    def _preselect(self, rows: Sequence[MemberChange]) -> str:
        """Put the cursor on the requested member, the first time only; return a sentence if the member is gone."""
        member_id, instance = self._wanted
        if not self._is_first or (member_id is None and instance is None):
            return ""
        self._is_first = False
        table = self.query_one("#plan", Rows)
        for row in rows:
            if (member_id is not None and row.consumer_id == member_id) or (
                instance is not None and row.group_instance_id == instance
            ):
                table.put_cursor(_key(row))
                table.focus()
                return ""
        name = f"Instance '{instance}'" if instance is not None else f"Member '{member_id}'"
        return f"{name} is no longer in the group. "

    async def carry_out(self) -> None:
        row, group, reason = self._member(), self.group, self.reason
        (done,), after = await self.feed.ask(lambda admin: _remove(admin, group, row, reason))
        self.note_outcome([done])
        self.query_one("#plan", Rows).show([done])
        if done.error:
            self.say(f"The member was not removed: {ended(done.error.message)} Press ^r to plan again.", "error")
        else:
            self.say(f"Done: the member was removed. {_now(done, after)}", "good")
        self.say_totals("")
        self.enter(Stage.CHANGED)

    def _member(self) -> MemberChange:
        row = self.selected
        assert row is not None
        return row

    def obstacle(self) -> str:
        return "" if self.selected else "There is no member to remove."

    def verb(self) -> str:
        return "Remove this member"

    def command(self) -> str:
        row = self.selected
        if row is None:
            return ""
        members, instances = ([], [row.group_instance_id]) if row.group_instance_id else ([row.consumer_id], [])
        return command_line.remove_members(self.feed.cluster, self.group, members, instances, self.reason)

    def detail(self, row: MemberChange) -> str:
        instance = f" (instance {row.group_instance_id})" if row.group_instance_id else ""
        return f"{row.consumer_id}{instance} of client {row.client_id} at {row.host}"

    def _status(self, row: MemberChange) -> str:
        if row.error:
            return printable(f"failed: {row.error.message}")
        if row.status == DONE:
            return "removed"
        return "leaves" if row == self.selected else "stays"

    def _say_selection(self) -> None:
        row = self.selected
        if row is not None:
            name = row.group_instance_id or row.consumer_id
            self.say(f"{self._missing}This removes {name}. {STATIC if row.group_instance_id else DYNAMIC}", "warning")


def _remove(admin: Admin, group: str, row: MemberChange, reason: str) -> tuple[list[MemberChange], GroupDescription]:
    done = admin.remove_members(group, [row], reason)
    (after,) = admin.describe_groups([group], offsets=False)
    return done, after


def _now(done: MemberChange, after: GroupDescription) -> str:
    """The state of the group after the removal, as read back."""
    if after.error:
        return f"The group could not be read back: {ended(after.error.message)}"
    ids = {member.consumer_id for member in after.members}
    instances = {member.group_instance_id for member in after.members}
    if done.consumer_id in ids:
        return "The coordinator still lists it."
    again = " The member has already rejoined." if done.group_instance_id in instances - {None} else ""
    return f"The group is {after.state} with {counted(len(after.members), 'member')}.{again}"


def _key(row: MemberChange) -> str:
    return f"{row.consumer_id}\0{row.group_instance_id}"


def _status_style(row: MemberChange) -> str:
    return "bad" if row.error else "good" if row.status == DONE else "dim"
