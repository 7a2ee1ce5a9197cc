"""The dialog that triggers a rebalance: with the native request if the broker has it, else by evicting all members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Static

from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import Precondition
from kgctl.model.changes import DONE, EVICTION, GONE, JOINED, PLANNED, REJOINED, TRIGGER, RebalanceRow
from kgctl.render.table import printable
from kgctl.tui import cells, command_line
from kgctl.tui.dialogs.plan import PlanDialog, Stage, ended
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
    AUTO_FOCUS: ClassVar[str | None] = "#plan"
    NAME: ClassVar[str] = "Rebalance group"
    WORKING: ClassVar[str] = "waiting for the group to become Stable"

    def __init__(self, feed: Feed, group: str, read_only: bool = False) -> None:
        super().__init__(feed, group, read_only)
        self.plan: list[RebalanceRow] = []

    # ---- inputs

    def form(self) -> Iterable[Widget]:
        yield Horizontal(
            Static("Reason", classes="label"),
            Input(placeholder=IN_HISTORY, compact=True, id="reason"),
            classes="line",
        )

    def table(self) -> Rows[RebalanceRow]:
        columns: list[Column[RebalanceRow]] = [
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
        return any(row.method == EVICTION for row in self.plan)

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
        group = self.group
        plan = await self.feed.ask(lambda admin: _plan(admin, group))
        self.plan = plan
        self.query_one("#plan", Rows).show(plan)
        self.query_one("#evict", Checkbox).display = self.evicts
        self.query_one("#reason", Input).placeholder = IN_LOG if self.evicts else IN_HISTORY
        self.say(EVICTING if self.evicts else NATIVE, "warning" if self.evicts else "")
        self.say_totals(f"{counted(len(plan), 'member')}{_in_generation(plan)}")
        self.enter(Stage.PLANNED)

    async def carry_out(self) -> None:
        group, plan, reason = self.group, self.plan, self.reason
        done = await self.feed.ask(lambda admin: admin.rebalance(group, plan, reason, wait=True))
        self.note_outcome(done)
        with self.prevent(Checkbox.Changed):
            self.query_one("#evict", Checkbox).value = False
        self.query_one("#plan", Rows).show(done)
        self.say(*_outcome(done))
        self.say_totals(_counts(done))
        self.enter(Stage.CHANGED)

    def obstacle(self) -> str:
        if not self.plan:
            return "There is nothing to do."
        if self.evicts and not self.query_one("#evict", Checkbox).value:
            return "Check the box to consent to the eviction."
        return ""

    def verb(self) -> str:
        return "Evict all members" if self.evicts else "Trigger rebalance"

    def command(self) -> str:
        return command_line.rebalance(self.feed.cluster, self.group, self.reason, evict=self.evicts)

    def detail(self, row: RebalanceRow) -> str:
        static = f", instance {row.group_instance_id}" if row.group_instance_id else ""
        return f"{row.consumer_id}{static}: {_status(row)}"


def _plan(admin: Admin, group: str) -> list[RebalanceRow]:
    """The plan without eviction or, if the broker refuses that, with eviction."""
    try:
        return admin.plan_rebalance(group)
    except Precondition:
        return admin.plan_rebalance(group, evict=True)


def _key(row: RebalanceRow) -> str:
    return f"instance {row.group_instance_id}" if row.group_instance_id else f"member {row.consumer_id}"


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
