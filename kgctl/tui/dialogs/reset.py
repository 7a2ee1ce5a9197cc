"""The dialog that resets committed offsets of groups."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Select, Static

from broker.light_dataclasses import replace
from kgctl.client.admin.admin import Admin
from kgctl.client.admin.reset import not_inactive
from kgctl.client.admin.reset_input import Strategy, target_of, topic_partitions
from kgctl.client.admin.reset_targets import Scope, Target
from kgctl.client.net.errors import BadValue, Precondition, from_row
from kgctl.journal.making import of_resets
from kgctl.journal.resets import effective, journal_rows
from kgctl.model.changes import DONE, FAILED, ResetPlan, ResetRow
from kgctl.render.table import printable
from kgctl.tui import cells, command_line
from kgctl.tui.dialogs import outcomes, rows
from kgctl.tui.dialogs.plan import READ_ONLY, PlanDialog, Stage
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.figures import counted

NOTHING_CHOSEN = "Choose what to reset to."
CHOICES: tuple[tuple[str, Strategy], ...] = (
    ("current: the committed offset", "to-current"),
    ("earliest: start of the log", "to-earliest"),
    ("latest: end of the log", "to-latest"),
    ("offset", "to-offset"),
    ("shift by a number of records", "shift-by"),
    ("by duration: this long ago", "by-duration"),
    ("date and time", "to-datetime"),
    ("from a file of offsets", "from-file"),
    ("where another group is", "to-group"),
)
VALUES: dict[Strategy, str] = {
    "to-offset": "an offset, such as 1200",
    "shift-by": "records, negative to go back: -100",
    "by-duration": "an ISO 8601 duration, such as PT1H30M",
    "to-datetime": "a time, such as 2026-01-31T12:00:00+01:00; UTC without a zone",
    "from-file": "a CSV file of topic,partition,offset",
    "to-group": "the id of the other group",
}
ALL_TOPICS = "all topics with commits of the group; or TOPIC TOPIC:0,2 ..."
CONSENT = "Nothing is changed until you consent."
WITH_MEMBERS = "Then press ^r to plan again."


class ResetDialog(PlanDialog):
    """`topic` and `partition` preset the scope; without them it is everything that the group has commits for."""

    DEFAULT_CSS = """
    ResetDialog {
        & #strategy { width: 32; margin-right: 1; }
        & #strategy > SelectCurrent { background: $panel; }
        & #value { width: 1fr; }
    }
    """
    NAME: ClassVar[str] = "Reset offsets of"
    ASKS_NAME: ClassVar[bool] = True
    WORKING: ClassVar[str] = "committing the offsets and reading them back"

    def __init__(
        self,
        feed: Feed,
        groups: str | Sequence[str],
        topic: str | None = None,
        partition: int | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(feed, groups, read_only)
        self.plans: list[ResetPlan] = []
        self._scope = "" if topic is None else printable(topic) + ("" if partition is None else f":{partition}")

    # ---- inputs

    def form(self) -> Iterable[Widget]:
        value = Input(compact=True, id="value")
        value.display = False
        yield Horizontal(
            Static("Reset to", classes="label"),
            Select(self._choices, prompt="choose ...", compact=True, id="strategy"),
            value,
            classes="line",
        )
        yield Horizontal(
            Static("Topics", classes="label"),
            Input(self._scope, placeholder=ALL_TOPICS, compact=True, id="topics"),
            classes="line",
        )

    @property
    def _choices(self) -> list[tuple[str, Strategy]]:
        # A file has the offsets of one group.
        return [choice for choice in CHOICES if not (self.is_bulk and choice[1] == "from-file")]

    def table(self) -> Rows[ResetRow]:
        columns: list[Column[ResetRow]] = [
            *rows.group_column(self.is_bulk),
            catalogue.topic(lambda row: row.topic),
            catalogue.partition(lambda row: row.partition),
            Column("old", "OLD", lambda row: cells.count(row.old_offset), 9, flex=1, most=12, right=True),
            Column("new", "NEW", lambda row: cells.count(row.new_offset), 9, flex=1, most=12, right=True),
            Column(
                "delta",
                "DELTA",
                lambda row: _signed(row.delta),
                9,
                flex=1,
                most=12,
                right=True,
                priority=int(self.is_bulk),
            ),
            # Of several groups, it says which cannot be reset.
            Column("note", "NOTE", _note, 12, flex=14, priority=int(not self.is_bulk), style=_note_style),
        ]
        key = "\0".join
        return Rows(
            columns, key=lambda row: key((row.group, row.topic, str(row.partition))), empty="No plan.", id="plan"
        )

    def is_idle(self, control: Widget) -> bool:
        return control.id == "topics" and self.strategy == "from-file"

    # ---- values of the inputs

    @property
    def strategy(self) -> Strategy | None:
        """None until the user has chosen one."""
        found: Any = self.query_one("#strategy", Select).selection
        chosen: Strategy | None = found
        return chosen

    @property
    def value(self) -> str:
        return self.query_one("#value", Input).value.strip()

    @property
    def topics(self) -> list[str]:
        """As typed; none for a file, which names its own topics."""
        return [] if self.strategy == "from-file" else self.query_one("#topics", Input).value.split()

    @property
    def _is_complete(self) -> bool:
        return self.strategy is not None and (self.strategy not in VALUES or bool(self.value))

    @on(Select.Changed, "#strategy")
    def _choose(self, event: Select.Changed) -> None:
        event.stop()
        value = self.query_one("#value", Input)
        value.display = self.strategy in VALUES
        value.placeholder = VALUES.get(self.strategy, "") if self.strategy else ""
        with self.prevent(Input.Changed):
            value.value = ""
        topics = self.query_one("#topics", Input)
        topics.placeholder = "given by the file" if self.strategy == "from-file" else ALL_TOPICS
        self.plan_again(0.0)

    @on(Input.Changed)
    def _type(self, event: Input.Changed) -> None:
        event.stop()
        if event.input.id != "name":
            self.plan_again()

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        if event.input.id != "name":
            self.plan_again(0.0)

    # ---- plan and execution

    async def preview(self) -> None:
        self.plans = []
        strategy, value = self.strategy, self.value
        if strategy is None:
            self.refuse(NOTHING_CHOSEN, kind="")
            return
        if not self._is_complete:
            self.refuse(f"Enter {VALUES[strategy].partition(';')[0]}.", kind="")
            return
        topics = tuple(topic_partitions(text) for text in self.topics)
        scope = Scope(topics, all_topics=not topics and strategy != "from-file")
        if strategy == "from-file":
            _check_file(value)
        groups, target = self.groups, target_of(self.groups[0], strategy, value, int(time.time() * 1000))
        plans = await self.feed.ask(lambda admin: _plan(admin, groups, scope, target))
        if not self.is_bulk and plans[0].error:
            error = from_row(plans[0].error)
            self.refuse(f"{error} {WITH_MEMBERS}" if isinstance(error, Precondition) else str(error))
            return
        self.plans = plans
        self._show(plans)
        self.say(*_plan_message(plans, READ_ONLY if self.read_only else CONSENT))
        self.enter(Stage.PLANNED)

    async def carry_out(self) -> None:
        plans, keeper, names = self.plans, self.keeper(), self.changing()
        done = await self.feed.ask(
            lambda admin: keeper.change_groups(
                admin,
                "reset-offsets",
                names,
                lambda states: of_resets(effective(plans, None, execute=True)),
                lambda: admin.apply_resets(plans),
                journal_rows,
            )
        )
        if not self.is_bulk and done[0].error:
            raise from_row(done[0].error)
        self.note_outcome([row for plan in done if plan.group in names and not plan.error for row in plan.rows])
        self._show(done)
        shown = _rows(done)
        failed = [row.error for row in shown if row.error]
        if self.is_bulk:
            self.say(*outcomes.of_groups(shown, "reset and read back as planned"))
        elif failed:
            self.say(f"{len(failed)} of {len(shown)} failed: {failed[0].message}", "error")
        else:
            self.say(f"Done: {counted(len(shown), 'partition')} committed and read back as planned.", "good")
        self.enter(Stage.CHANGED)

    def changing(self) -> list[str]:
        return [plan.group for plan in self.plans if plan.rows and not plan.failed]

    def obstacle(self) -> str:
        if not any(plan.rows for plan in self.plans):
            return "There is nothing to do."
        if not self.changing():
            return "The plan has errors; a reset is executed as a whole or not at all."
        return ""

    def verb(self) -> str:
        return "Reset offsets"

    def words(self) -> list[str]:
        strategy = self.strategy
        if strategy is None or not self._is_complete:
            return []
        try:
            for text in self.topics:
                topic_partitions(text)
            if strategy != "from-file":
                target_of(self.groups[0], strategy, self.value, 0)
        except BadValue:
            return []
        create = any(plan.state is None and plan.rows for plan in self.plans)
        return command_line.reset_offsets(
            self.feed.cluster, self.groups, strategy, self.value, self.topics, create=create
        )

    def detail(self, row: ResetRow) -> str:
        place = (row.topic or row.group) if row.partition is None else f"{row.topic}-{row.partition}"
        note = _note(row) if row.error or row.note else ""
        return f"{place}: {note}" if note else place if len(row.topic) > catalogue.TOPIC_WIDTH else ""

    def _show(self, plans: Sequence[ResetPlan]) -> None:
        found = _rows(plans)
        self.query_one("#plan", Rows).show(found)
        groups = f"{counted(len(plans), 'group')}, " if self.is_bulk else ""
        self.say_totals(groups + _totals(found))


def _plan(admin: Admin, groups: Sequence[str], scope: Scope, target: Target) -> list[ResetPlan]:
    """A plan for each group; one that has members, or that cannot be planned, has an error."""
    # Of several groups, one that does not exist has gone since it was marked.
    plans = admin.plan_resets(groups, scope, target, create=len(groups) == 1)
    return [
        plan if plan.error or not plan.is_active else replace(plan, error=not_inactive(plan).as_row()) for plan in plans
    ]


def _rows(plans: Sequence[ResetPlan]) -> list[ResetRow]:
    """All rows of the plans; a plan with an error is one row with it."""
    found: list[ResetRow] = []
    for plan in plans:
        if plan.error:
            found.append(ResetRow(plan.group, "", None, None, None, None, status=FAILED, error=plan.error))
        else:
            found += plan.rows
    return found


def _check_file(path: str) -> None:
    """Raise BadValue for a pipe or a terminal, which may never end: while the user types, every prefix of the path is tried."""
    with contextlib.suppress(OSError, ValueError):
        found = Path(path)
        if found.exists() and not (found.is_file() or found.is_dir()):
            raise BadValue(f"Cannot read {path}: it is not a regular file.")


def _plan_message(plans: Sequence[ResetPlan], otherwise: str) -> tuple[str, str]:
    """The message about the plans and its kind; `otherwise` if there is nothing unusual."""
    errors = [row.error for row in _rows(plans) if row.error]
    if errors and len(plans) > 1:
        bad = [plan for plan in plans if plan.failed]
        text = f"{len(bad):,} of {counted(len(plans), 'group')} cannot be reset and will be left alone: "
        return text + errors[0].message, "error"
    if errors:
        return f"{counted(len(errors), 'error')} in the plan, so nothing can be reset: {errors[0].message}", "error"
    if any(plan.state is None for plan in plans):
        return "The group does not exist; executing this plan creates it.", "warning"
    return otherwise, ""


def _totals(found: Sequence[ResetRow]) -> str:
    failed = sum(row.error is not None for row in found)
    deltas = [row.delta for row in found if row.delta is not None]
    parts = [
        (-sum(delta for delta in deltas if delta < 0), "to read again"),
        (sum(delta for delta in deltas if delta > 0), "to skip"),
    ]
    texts = [f"{counted(number, 'record')} {what}" for number, what in parts if number]
    fresh = sum(row.old_offset is None and row.new_offset is not None for row in found)
    if fresh:
        texts.append(f"{counted(fresh, 'first commit')}")
    if failed:
        texts.append(f"{failed:,} failed")
    return ", ".join([counted(sum(bool(row.topic) for row in found), "partition"), *(texts or ["no change"])])


def _signed(number: int | None) -> str:
    return cells.count(number) if not number else f"{number:+,}"


def _note(row: ResetRow) -> str:
    if row.error:
        return printable(f"failed: {row.error.message}")
    parts = ["done"] if row.status == DONE else []
    return printable("; ".join([*parts, *([row.note] if row.note else [])]))


def _note_style(row: ResetRow) -> str:
    return "bad" if row.error else "good" if row.status == DONE else "dim"
