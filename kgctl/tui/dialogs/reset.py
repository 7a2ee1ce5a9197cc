"""The dialog that resets committed offsets of a group."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Select, Static

from kgctl.client.admin.reset_input import Strategy, target_of, topic_partitions
from kgctl.client.admin.reset_targets import Scope
from kgctl.client.net.errors import BadValue, NotFound, Precondition
from kgctl.model.changes import DONE, ResetPlan, ResetRow
from kgctl.render.table import printable
from kgctl.tui import cells, command_line
from kgctl.tui.dialogs.plan import READ_ONLY, PlanDialog, Stage
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.figures import counted

CHOICES: tuple[tuple[str, Strategy], ...] = (
    ("current: the committed offset", "to-current"),
    ("earliest: start of the log", "to-earliest"),
    ("latest: end of the log", "to-latest"),
    ("offset", "to-offset"),
    ("shift by a number of records", "shift-by"),
    ("by duration: this long ago", "by-duration"),
    ("date and time", "to-datetime"),
    ("from a file of offsets", "from-file"),
)
VALUES: dict[Strategy, str] = {
    "to-offset": "an offset, such as 1200",
    "shift-by": "records, negative to go back: -100",
    "by-duration": "an ISO 8601 duration, such as PT1H30M",
    "to-datetime": "a time, such as 2026-01-31T12:00:00+01:00; UTC without a zone",
    "from-file": "a CSV file of topic,partition,offset",
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
    NAME: ClassVar[str] = "Reset offsets of group"
    ASKS_NAME: ClassVar[bool] = True
    WORKING: ClassVar[str] = "committing the offsets and reading them back"

    def __init__(
        self,
        feed: Feed,
        group: str,
        topic: str | None = None,
        partition: int | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(feed, group, read_only)
        self.plan: ResetPlan | None = None
        self._scope = "" if topic is None else printable(topic) + ("" if partition is None else f":{partition}")

    # ---- inputs

    def form(self) -> Iterable[Widget]:
        value = Input(compact=True, id="value")
        value.display = False
        yield Horizontal(
            Static("Reset to", classes="label"),
            Select(CHOICES, value=CHOICES[0][1], allow_blank=False, compact=True, id="strategy"),
            value,
            classes="line",
        )
        yield Horizontal(
            Static("Topics", classes="label"),
            Input(self._scope, placeholder=ALL_TOPICS, compact=True, id="topics"),
            classes="line",
        )

    def table(self) -> Rows[ResetRow]:
        columns: list[Column[ResetRow]] = [
            catalogue.topic(lambda row: row.topic),
            catalogue.partition(lambda row: row.partition),
            Column("old", "OLD", lambda row: cells.count(row.old_offset), 9, flex=1, most=12, right=True),
            Column("new", "NEW", lambda row: cells.count(row.new_offset), 9, flex=1, most=12, right=True),
            Column("delta", "DELTA", lambda row: _signed(row.delta), 9, flex=1, most=12, right=True),
            Column("note", "NOTE", _note, 12, flex=14, priority=1, style=_note_style),
        ]
        return Rows(columns, key=lambda row: f"{row.topic}\0{row.partition}", empty="No plan.", id="plan")

    def is_idle(self, control: Widget) -> bool:
        return control.id == "topics" and self.strategy == "from-file"

    # ---- values of the inputs

    @property
    def strategy(self) -> Strategy:
        found: Any = self.query_one("#strategy", Select).value
        chosen: Strategy = found
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
        return self.strategy not in VALUES or bool(self.value)

    @on(Select.Changed, "#strategy")
    def _choose(self, event: Select.Changed) -> None:
        event.stop()
        value = self.query_one("#value", Input)
        value.display = self.strategy in VALUES
        value.placeholder = VALUES.get(self.strategy, "")
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
        self.plan = None
        if not self._is_complete:
            self.refuse(f"Enter {VALUES[self.strategy].partition(';')[0]}.", kind="")
            return
        group, strategy, value = self.group, self.strategy, self.value
        topics = tuple(topic_partitions(text) for text in self.topics)
        scope = Scope(topics, all_topics=not topics and strategy != "from-file")
        if strategy == "from-file":
            _check_file(value)
        target = target_of(group, strategy, value, int(time.time() * 1000))
        try:
            plan = await self.feed.ask(lambda admin: admin.plan_reset(group, scope, target))
        except Precondition as error:
            self.refuse(f"{error} {WITH_MEMBERS}")
            return
        except NotFound as error:
            self.refuse(str(error))
            return
        self.plan = plan
        self._show(plan)
        self.say(*_plan_message(plan, READ_ONLY if self.read_only else CONSENT))
        self.enter(Stage.PLANNED)

    async def carry_out(self) -> None:
        plan = self.plan
        assert plan is not None
        done = await self.feed.ask(lambda admin: admin.apply_reset(plan))
        self.note_outcome(done.rows)
        self._show(done)
        failed = [row.error for row in done.rows if row.error]
        if failed:
            self.say(f"{len(failed)} of {len(done.rows)} failed: {failed[0].message}", "error")
        else:
            self.say(f"Done: {counted(len(done.rows), 'partition')} committed and read back as planned.", "good")
        self.enter(Stage.CHANGED)

    def obstacle(self) -> str:
        if self.plan is None or not self.plan.rows:
            return "There is nothing to do."
        if self.plan.failed:
            return "The plan has errors; a reset is executed as a whole or not at all."
        return ""

    def verb(self) -> str:
        return "Reset offsets"

    def command(self) -> str:
        if not self._is_complete:
            return ""
        try:
            for text in self.topics:
                topic_partitions(text)
            if self.strategy != "from-file":
                target_of(self.group, self.strategy, self.value, 0)
        except BadValue:
            return ""
        return command_line.reset_offsets(self.feed.cluster, self.group, self.strategy, self.value, self.topics)

    def detail(self, row: ResetRow) -> str:
        place = row.topic if row.partition is None else f"{row.topic}-{row.partition}"
        note = _note(row) if row.error or row.note else ""
        return f"{place}: {note}" if note else place if len(row.topic) > catalogue.TOPIC_WIDTH else ""

    def _show(self, plan: ResetPlan) -> None:
        self.query_one("#plan", Rows).show(plan.rows)
        self.say_totals(_totals(plan))


def _check_file(path: str) -> None:
    """Raise BadValue for a pipe or a terminal, which may never end: while the user types, every prefix of the path is tried."""
    with contextlib.suppress(OSError, ValueError):
        found = Path(path)
        if found.exists() and not (found.is_file() or found.is_dir()):
            raise BadValue(f"Cannot read {path}: it is not a regular file.")


def _plan_message(plan: ResetPlan, otherwise: str) -> tuple[str, str]:
    """The message about a plan and its kind; `otherwise` if there is nothing unusual."""
    errors = [row.error for row in plan.rows if row.error]
    if errors:
        return f"{counted(len(errors), 'error')} in the plan, so nothing can be reset: {errors[0].message}", "error"
    if plan.state is None:
        return "The group does not exist; executing this plan creates it.", "warning"
    return otherwise, ""


def _totals(plan: ResetPlan) -> str:
    failed = sum(row.error is not None for row in plan.rows)
    deltas = [row.delta for row in plan.rows if row.delta is not None]
    parts = [
        (-sum(delta for delta in deltas if delta < 0), "to read again"),
        (sum(delta for delta in deltas if delta > 0), "to skip"),
    ]
    texts = [f"{counted(number, 'record')} {what}" for number, what in parts if number]
    fresh = sum(row.old_offset is None and row.new_offset is not None for row in plan.rows)
    if fresh:
        texts.append(f"{counted(fresh, 'first commit')}")
    if failed:
        texts.append(f"{failed:,} failed")
    return ", ".join([counted(len(plan.rows), "partition"), *(texts or ["no change"])])


def _signed(number: int | None) -> str:
    return cells.count(number) if not number else f"{number:+,}"


def _note(row: ResetRow) -> str:
    if row.error:
        return printable(f"failed: {row.error.message}")
    parts = ["done"] if row.status == DONE else []
    return printable("; ".join([*parts, *([row.note] if row.note else [])]))


def _note_style(row: ResetRow) -> str:
    return "bad" if row.error else "good" if row.status == DONE else "dim"
