"""The dialog that triggers rebalances: with the native request if the broker has it, else by evicting all members."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Static

from kgctl.client.admin.admin import Admin
from kgctl.journal.making import of_rebalances
from kgctl.model.changes import DONE, EVICTION, GONE, JOINED, PLANNED, REJOINED, TRIGGER, RebalanceRow
from kgctl.render.table import printable
from kgctl.tui import cells, command_line
from kgctl.tui.dialogs import outcomes, rows
from kgctl.tui.dialogs.outcomes import ended
from kgctl.tui.dialogs.plan import PlanDialog, Stage
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.figures import counted

NATIVE = "All members rejoin the group. No member is evicted, and all keep their member ids."
EVICTING = (
    "This broker cannot trigger a rebalance without eviction. It would remove all members below; "
    "those that are running rejoin with new member ids."
)

IN_HISTORY = "optional; recorded in the group's history"
IN_LOG = "optional; recorded in the broker's log"
EVICT = "Evict all members; they will process uncommitted records again"


class Tick(Checkbox):
    """A checkbox whose state is visible without colours."""

    DEFAULT_CSS = """
    Tick { width: 1fr; &:focus { background: $block-cursor-background; color: $block-cursor-foreground; } }
    """

    def render(self) -> Content:
        return Content(f"[{'x' if self.value else ' '}] {EVICT}")


class RebalanceDialog(PlanDialog):
    DEFAULT_CSS = """
    RebalanceDialog #evict { display: none; }
    """
    NAME: ClassVar[str] = "Rebalance"
    WORKING: ClassVar[str] = "waiting for the group to become Stable"

    def __init__(self, feed: Feed, groups: str | Sequence[str], read_only: bool = False) -> None:
        super().__init__(feed, groups, read_only)
        self.plan: list[RebalanceRow] = []

    # ---- inputs

    def form(self) -> Iterable[Widget]:
        yield Horizontal(
            Static("Reason", classes="label"),
            Input(placeholder=IN_HISTORY, compact=True, select_on_focus=False, id="reason"),
            classes="line",
        )

    def table(self) -> Rows[RebalanceRow]:
        columns: list[Column[RebalanceRow]] = [
            *rows.group_column(self.is_bulk),
            catalogue.consumer_id(lambda row: row.consumer_id),
            catalogue.instance(lambda row: row.group_instance_id),
            catalogue.client_id(lambda row: row.client_id, priority=1),
            catalogue.host(lambda row: row.host),
            Column("status", "STATUS", _status, 16, flex=1, style=_status_style),
        ]
        return Rows(columns, key=_key, empty="No members.", id="plan")

    def consent(self) -> Iterable[Widget]:
        yield Tick(EVICT, compact=True, id="evict", disabled=self.read_only)

    def is_idle(self, control: Widget) -> bool:
        return control.id == "evict" and self.read_only

    @property
    def reason(self) -> str:
        return self.query_one("#reason", Input).value.strip()

    @property
    def evicts(self) -> bool:
        """Whether the current plan evicts members."""
        return any(row.method == EVICTION and not row.error for row in self.plan)

    @on(Input.Changed, "#reason")
    @on(Checkbox.Changed, "#evict")
    def _update(self, event: Input.Changed | Checkbox.Changed) -> None:
        event.stop()
        self.show_state()

    @on(Input.Submitted, "#reason")
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self.focus_next()

    # ---- plan and execution

    async def preview(self) -> None:
        self.plan = []
        groups = self.groups
        plan = await self.feed.ask(lambda admin: _plan(admin, groups))
        if not self.is_bulk and plan and plan[0].error:
            self.refuse(plan[0].error.message)
            return
        self.plan = plan
        self.query_one("#plan", Rows).show(plan)
        self.query_one("#evict", Checkbox).display = self.evicts
        self.query_one("#reason", Input).placeholder = IN_LOG if self.evicts else IN_HISTORY
        errors = [row for row in plan if row.error]
        if self.is_futile():
            self.say(f"None of the {len(self.groups):,} groups can be rebalanced.", "error")
            self.say_totals("")
            self.enter(Stage.PLANNED)
            return
        if errors:
            text = f"{len(errors):,} of {len(self.groups):,} groups cannot be rebalanced and will be left alone."
            self.say(f"{text} {EVICTING}" if self.evicts else text, "error")
        else:
            self.say(EVICTING if self.evicts else NATIVE, "warning" if self.evicts else "")
        members = counted(len(plan) - len(errors), "member")
        self.say_totals(
            f"{counted(len(self.changing()), 'group')}, {members}"
            if self.is_bulk
            else f"{members}{_in_generation(plan)}"
        )
        self.enter(Stage.PLANNED)

    async def carry_out(self) -> None:
        plan, reason, evict, keeper = self.plan, self.reason, self.evicts, self.keeper()
        names, is_bulk = self.changing(), self.is_bulk
        done = await self.feed.ask(
            lambda admin: keeper.change_groups(
                admin,
                "rebalance",
                names,
                lambda states: of_rebalances(plan, states, evict=evict),
                lambda: _rebalance(admin, plan, reason, is_bulk=is_bulk),
                reason=reason,
            )
        )
        self.note_outcome([row for row in done if row.group in names])
        with self.prevent(Checkbox.Changed):
            self.query_one("#evict", Checkbox).value = False
        self.query_one("#plan", Rows).show(done)
        self.say(*(outcomes.of_groups(done, "rebalanced and Stable") if self.is_bulk else _outcome(done)))
        self.say_totals(_counts(done))
        self.enter(Stage.CHANGED)

    def changing(self) -> list[str]:
        return outcomes.can_change(self.plan)

    def is_futile(self) -> bool:
        return bool(self.plan) and not self.changing()

    def obstacle(self) -> str:
        if not self.changing():
            return "There is nothing to do."
        if self.evicts and not self.query_one("#evict", Checkbox).value:
            return "Check the box to consent to the eviction."
        return ""

    def verb(self) -> str:
        return "Evict all members" if self.evicts else "Trigger rebalance"

    def words(self) -> list[str]:
        return command_line.rebalance(self.feed.cluster, self.groups, self.reason, evict=self.evicts)

    def detail(self, row: RebalanceRow) -> str:
        static = f", instance {row.group_instance_id}" if row.group_instance_id else ""
        return f"{row.consumer_id or row.group}{static}: {_status(row)}"


def _plan(admin: Admin, groups: Sequence[str]) -> list[RebalanceRow]:
    """The plan without eviction or, if a broker refuses that for a group, with eviction where nothing else works."""
    plan = admin.plan_rebalances(groups)
    if any(row.error for row in plan):
        plan = admin.plan_rebalances(groups, evict=True)
    return plan


def _rebalance(admin: Admin, plan: list[RebalanceRow], reason: str, *, is_bulk: bool) -> list[RebalanceRow]:
    """Request the rebalances and wait until the groups are Stable. Raises the error of the only group."""
    if not is_bulk:
        return admin.rebalance(plan[0].group, plan, reason, wait=True)
    since = time.monotonic()
    return admin.await_rebalances(admin.request_rebalances(plan, reason), since)


def _key(row: RebalanceRow) -> str:
    member = f"instance {row.group_instance_id}" if row.group_instance_id else f"member {row.consumer_id}"
    return f"{row.group}\0{member}"


def _status(row: RebalanceRow) -> str:
    if row.error:
        return printable(f"failed: {row.error.message}")
    if row.status == PLANNED:
        return "will rejoin" if row.method == TRIGGER else "will be evicted"
    if row.status == DONE:
        return "rejoining" if row.method == TRIGGER else "evicted"
    return row.status


def _status_style(row: RebalanceRow) -> str:
    if row.error:
        return "bad"
    return {REJOINED: "good", JOINED: "good", GONE: "warn"}.get(row.status, "dim")


def _in_generation(plan: Sequence[RebalanceRow]) -> str:
    generation = plan[0].generation_before if plan else None
    return "" if generation is None else f", current generation {generation}"


def _outcome(rows: Sequence[RebalanceRow]) -> tuple[str, str]:
    """The outcome as a sentence, and its kind."""
    errors = [row.error for row in rows if row.error]
    stable = next((row for row in rows if row.stable_after_ms is not None), None)
    if stable is None and errors and errors[0].name == "TIMED_OUT":
        return f"The rebalance was triggered. {ended(errors[0].message)}", "error"
    if errors:
        return f"{len(errors)} of {len(rows)} failed: {errors[0].message}", "error"
    if stable is None:
        return "The rebalance was triggered.", "good"
    generations = ""
    if stable.generation_after is not None:
        before = "" if stable.generation_before is None else f" (before: {stable.generation_before})"
        generations = f" in generation {stable.generation_after}{before}"
    return f"Done: the group is Stable after {cells.milliseconds(stable.stable_after_ms)}{generations}.", "good"


def _counts(rows: Sequence[RebalanceRow]) -> str:
    counts = Counter("failed" if row.error else row.status for row in rows)
    return ", ".join(f"{number:,} {status}" for status, number in counts.items())
