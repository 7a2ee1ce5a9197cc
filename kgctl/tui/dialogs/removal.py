"""The dialog that removes members of groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Static

from broker.light_dataclasses import replace
from kgctl.client.admin.admin import Admin
from kgctl.client.admin.removals import Members
from kgctl.client.net.errors import KgctlError
from kgctl.journal.making import of_removals
from kgctl.model.changes import DONE, FAILED, MemberChange
from kgctl.model.groups import GroupDescription
from kgctl.tui import command_line
from kgctl.tui.dialogs import outcomes, rows
from kgctl.tui.dialogs.outcomes import ended
from kgctl.tui.dialogs.plan import READ_ONLY, PlanDialog, Stage
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.figures import counted

NOTHING_CHOSEN = "Mark the members to remove: space marks one, a all."
DYNAMIC = "The group rebalances. If the consumer is still running, it rejoins with a new member id."
STATIC = "The group rebalances. If the consumer is still running, it rejoins with the same instance id."
SEVERAL = "Their groups rebalance, and consumers that are still running rejoin."


class RemoveMemberDialog(PlanDialog):
    """`member_id` or `instance` is marked at the start if it is still there; otherwise nothing is."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "Mark or unmark the member"),
        Binding("a", "mark_all", "Mark or unmark all members"),
    ]
    NAME: ClassVar[str] = "Remove members of"
    WORKING: ClassVar[str] = "removing members and reading the group back"
    KEYS: ClassVar[str] = "space mark - a mark all - y or ^y copy - ^r plan again - Esc close"

    def __init__(
        self,
        feed: Feed,
        groups: str | Sequence[str],
        member_id: str | None = None,
        instance: str | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(feed, groups, read_only)
        self._wanted = (member_id, instance)
        self._is_first = True
        self._missing = ""
        self._members: list[MemberChange] = []
        self._marked: set[str] = set()

    # ---- inputs

    def form(self) -> Iterable[Widget]:
        yield Horizontal(
            Static("Reason", classes="label"),
            Input(
                placeholder="optional; recorded in the broker's log", compact=True, select_on_focus=False, id="reason"
            ),
            classes="line",
        )

    def table(self) -> Rows[MemberChange]:
        columns: list[Column[MemberChange]] = [
            *rows.group_column(self.is_bulk),
            catalogue.consumer_id(lambda row: row.consumer_id),
            catalogue.instance(lambda row: row.group_instance_id),
            catalogue.client_id(lambda row: row.client_id, priority=1),
            catalogue.host(lambda row: row.host),
            Column("status", "STATUS", self._status, 10, flex=1, style=lambda row: rows.style(row.status, row.error)),
        ]
        found: Rows[MemberChange] = Rows(columns, key=_key, empty="No members.", id="plan")
        found.marked = self._marked
        return found

    @property
    def reason(self) -> str:
        return self.query_one("#reason", Input).value.strip()

    @property
    def selected(self) -> list[MemberChange]:
        """The marked members."""
        return [row for row in self._members if _key(row) in self._marked and not row.error]

    @on(Input.Changed, "#reason")
    def _type(self, event: Input.Changed) -> None:
        event.stop()
        self.show_state()

    @on(Input.Submitted, "#reason")
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self.focus_next()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("mark", "mark_all"):
            return self.stage is Stage.PLANNED and getattr(self.focused, "id", "") == "plan"
        return super().check_action(action, parameters)

    def action_mark(self) -> None:
        table: Rows[MemberChange] = self.query_one("#plan", Rows)
        if table.cursor_row is not None and not table.cursor_row.error:
            table.toggle_mark()
        self._show_selection()

    def action_mark_all(self) -> None:
        every = {_key(row) for row in self._members if not row.error}
        is_all = every <= self._marked
        self._marked.clear()
        self._marked.update(set() if is_all else every)
        self._show_selection()

    # ---- plan and execution

    async def preview(self) -> None:
        groups = self.groups
        found = await self.feed.ask(lambda admin: admin.plan_member_removals(groups, Members(everyone=True)))
        self._members = found
        if not self.is_bulk and found and found[0].error:
            self.refuse(found[0].error.message)
            return
        if not found:
            self.refuse("The group has no active members.", "warning")
            return
        self._missing = self._preselect(found)
        self._marked.intersection_update([_key(row) for row in found])
        self.query_one("#plan", Rows).show(found)
        self.enter(Stage.PLANNED)
        self._show_selection()

    def _preselect(self, found: Sequence[MemberChange]) -> str:
        """Mark the requested member, the first time only; return a sentence if it is gone."""
        member_id, instance = self._wanted
        if not self._is_first or (member_id is None and instance is None):
            return ""
        self._is_first = False
        table = self.query_one("#plan", Rows)
        for row in found:
            if (member_id is not None and row.consumer_id == member_id) or (
                instance is not None and row.group_instance_id == instance
            ):
                table.show(found)
                table.put_cursor(_key(row))
                self._marked.add(_key(row))
                return ""
        name = f"Instance '{instance}'" if instance is not None else f"Member '{member_id}'"
        return f"{name} is no longer in the group. "

    async def carry_out(self) -> None:
        plan, groups, reason, keeper = self.selected, self.groups, self.reason, self.keeper()
        done, after = await self.feed.ask(
            lambda admin: (
                keeper.change_groups(
                    admin,
                    "remove-members",
                    [row.group for row in plan],
                    lambda states: of_removals(plan, states),
                    lambda: _remove(admin, plan, reason, is_bulk=len(groups) > 1),
                    reason=reason,
                ),
                _read_back(admin, groups),
            )
        )
        self.note_outcome(done)
        self._members, failed = done, [row.error for row in done if row.error]
        self.query_one("#plan", Rows).show(done)
        if failed:
            what = "The member was" if len(done) == 1 else f"{len(failed)} of {len(done)} members were"
            self.say(f"{what} not removed: {ended(failed[0].message)} Press ^r to plan again.", "error")
        else:
            what = "the member was" if len(done) == 1 else f"{len(done):,} members were"
            self.say(f"Done: {what} removed. {_now(done, after)}", "good")
        self.say_totals("")
        self._marked.clear()
        self.enter(Stage.CHANGED)

    def changing(self) -> list[str]:
        return outcomes.can_change(self.selected)

    def obstacle(self) -> str:
        return "" if self.selected else NOTHING_CHOSEN

    def verb(self) -> str:
        return "Remove members"

    def words(self) -> list[str]:
        return self._words(self.selected)

    def command(self) -> str:
        """A member that one group has is an error in others, so each group has its own line, unless all members leave."""
        selected = self.selected
        if len(selected) == len([row for row in self._members if not row.error]):
            return command_line.line(self._words(selected))
        groups = dict.fromkeys(row.group for row in selected)
        each = ([row for row in selected if row.group == group] for group in groups)
        return " && ".join(command_line.line(self._words(some)) for some in each)

    def _words(self, selected: Sequence[MemberChange]) -> list[str]:
        if not selected:
            return []
        groups = list(dict.fromkeys(row.group for row in selected))
        there = [row for row in self._members if row.group in groups and not row.error]
        instances = [row.group_instance_id for row in selected if row.group_instance_id]
        members = [row.consumer_id for row in selected if not row.group_instance_id]
        everyone = len(selected) == len(there) > 1
        return command_line.remove_members(
            self.feed.cluster, groups, members, list(dict.fromkeys(instances)), self.reason, everyone=everyone
        )

    def detail(self, row: MemberChange) -> str:
        if row.error and not row.consumer_id:
            return f"{row.group}: {rows.failure(row)}"
        instance = f" (instance {row.group_instance_id})" if row.group_instance_id else ""
        return f"{row.consumer_id}{instance} of client {row.client_id} at {row.host}"

    def _status(self, row: MemberChange) -> str:
        if row.error:
            return rows.failure(row)
        if row.status == DONE:
            return "removed"
        return "leaves" if _key(row) in self._marked else "stays"

    def _show_selection(self) -> None:
        selected = self.selected
        self.query_one("#plan", Rows).refresh()
        errors = [row.error for row in self._members if row.error]
        members = counted(len(self._members) - len(errors), "member")
        without = len(self.groups) - len({row.group for row in self._members})
        empty = f"; {counted(without, 'group')} without members" if without else ""
        self.say_totals(f"{len(selected):,} of {members} marked{empty}")
        if self.read_only:
            self.say(READ_ONLY, "warning")
        elif not selected:
            problem = f"{ended(errors[0].message)} " if errors else ""
            self.say(f"{self._missing}{problem}{NOTHING_CHOSEN}", "warning" if self._missing or problem else "")
        elif len(selected) == 1:
            (row,) = selected
            name = row.group_instance_id or row.consumer_id
            self.say(f"This removes {name}. {STATIC if row.group_instance_id else DYNAMIC}", "warning")
        else:
            self.say(f"This removes {len(selected):,} members. {SEVERAL}", "warning")
        self.show_state()


def _remove(admin: Admin, plan: Sequence[MemberChange], reason: str, *, is_bulk: bool) -> list[MemberChange]:
    """Group by group. Of several groups, one that fails as a whole does not stop the others."""
    done: list[MemberChange] = []
    for group in dict.fromkeys(row.group for row in plan):
        some = [row for row in plan if row.group == group]
        try:
            done += admin.remove_members(group, some, reason)
        except KgctlError as error:
            if not is_bulk:
                raise
            done += [replace(row, status=FAILED, error=error.as_row()) for row in some]
    return done


def _read_back(admin: Admin, groups: Sequence[str]) -> list[GroupDescription] | KgctlError:
    """The groups after the removal. A failure is returned: the members are removed all the same."""
    try:
        return admin.describe_groups(groups, offsets=False)
    except KgctlError as error:
        return error


def _now(done: Sequence[MemberChange], after: Sequence[GroupDescription] | KgctlError) -> str:
    """The state of the only group after the removal, as read back."""
    if isinstance(after, KgctlError):
        return f"What followed could not be read back: {ended(str(after))}"
    if len(after) > 1:
        return f"{counted(len(dict.fromkeys(row.group for row in done)), 'group')} rebalanced."
    (group,) = after
    if group.error:
        return f"The group could not be read back: {ended(group.error.message)}"
    ids = {member.consumer_id for member in group.members}
    instances = {member.group_instance_id for member in group.members}
    if any(row.consumer_id in ids for row in done):
        return "The coordinator still lists it." if len(done) == 1 else "The coordinator still lists some of them."
    is_back = any(row.group_instance_id in instances - {None} for row in done)
    again = " The member has already rejoined." if is_back else ""
    return f"The group is {group.state} with {counted(len(group.members), 'member')}.{again}"


def _key(row: MemberChange) -> str:
    return f"{row.group}\0{row.consumer_id}\0{row.group_instance_id}"
