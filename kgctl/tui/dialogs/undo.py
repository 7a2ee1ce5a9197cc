"""The dialog that takes a change of the journal back."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Checkbox

from kgctl.journal.taking_back import TakingBack, carry_out_undo, changes_of, plan_undo, refusal
from kgctl.model.changes import DONE, PLANNED
from kgctl.model.items import CREATE, DELETE, SET, ItemRow
from kgctl.model.plans import ChangeRow, JournalRow
from kgctl.render.table import MISSING, printable
from kgctl.tui import cells, command_line
from kgctl.tui.dialogs import rows
from kgctl.tui.dialogs.outcomes import ended
from kgctl.tui.dialogs.plan import READ_ONLY, PlanDialog, Stage
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.figures import counted

MOST_CHANGES = 100
NOTHING_CHOSEN = "Choose a change: Enter shows what takes it back."
NO_CHANGES = "The journal of this machine has no change of this cluster."
FORCE = "Also replace what has changed since"
WILL = {CREATE: "will be created", DELETE: "will be deleted", SET: "will be set"}
Row = ChangeRow | ItemRow


class Force(Checkbox):
    """A checkbox whose state is visible without colours."""

    DEFAULT_CSS = """
    Force { width: 1fr; &:focus { background: $block-cursor-background; color: $block-cursor-foreground; } }
    """

    def render(self) -> Content:
        return Content(f"[{'x' if self.value else ' '}] {FORCE}")


class UndoDialog(PlanDialog):
    """The changes of this cluster, newest first; Enter chooses one, and nothing is chosen at the start."""

    DEFAULT_CSS = """
    UndoDialog #changes { height: 8; min-height: 4; border-bottom: solid $panel; }
    """
    AUTO_FOCUS: ClassVar[str | None] = "#changes"
    NAME: ClassVar[str] = "Undo a change"
    ASKS_NAME: ClassVar[bool] = True
    WORKING: ClassVar[str] = "taking the change back"
    KEYS: ClassVar[str] = "enter choose - y or ^y copy - ^r plan again - Esc close"

    def __init__(self, feed: Feed, read_only: bool = False) -> None:
        super().__init__(feed, (), read_only)
        self.chosen: JournalRow | None = None
        self.plan: TakingBack | None = None

    def heading(self) -> str:
        return self.NAME

    def form(self) -> Iterable[Widget]:
        columns: list[Column[JournalRow]] = [
            Column("time", "AGE", lambda row: _ago(row), 8, right=True),
            Column("verb", "CHANGE", lambda row: cells.name(row.verb), 14, flex=1, most=20),
            Column("what", "OF", lambda row: cells.name(", ".join([*row.groups, *row.items])), 14, flex=4),
            Column("by", "BY", lambda row: cells.name(f"{row.user}@{row.host}"), 12, flex=1, most=24, priority=1),
            Column("outcome", "OUTCOME", _outcome, 13, style=lambda row: "" if row.outcome == DONE else "warn"),
        ]
        yield Rows(columns, key=lambda row: row.id, empty=NO_CHANGES, look=None, id="changes")
        yield Force(FORCE, compact=True, id="force")

    def table(self) -> Rows[Row]:
        columns: list[Column[Row]] = [
            Column("what", "WHAT", _what, 16, flex=4),
            Column("now", "NOW", _now, 9, flex=1, most=16, right=True),
            Column("new", "THEN", _then, 9, flex=1, most=16, right=True),
            Column("status", "STATUS", _status, 12, flex=6, style=lambda row: rows.style(row.status, row.error)),
        ]
        return Rows(columns, key=lambda row: _what(row) + str(row.status), empty="No plan.", id="plan")

    # ---- the change

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        event.stop()
        if event.rows.id == "changes" and self.stage is not Stage.CHANGING:
            self.chosen = event.row
            self.discard_consent()
            self.plan_again(0.0)

    @on(Checkbox.Changed, "#force")
    def _force(self, event: Checkbox.Changed) -> None:
        event.stop()
        self.discard_consent()
        self.plan_again(0.0)

    @property
    def forces(self) -> bool:
        return self.query_one("#force", Checkbox).value

    async def preview(self) -> None:
        self.plan = None
        change, force = self.chosen, self.forces
        found = await self.feed.ask(changes_of)
        self.query_one("#changes", Rows).show(found[:MOST_CHANGES])
        if change is None:
            self.refuse(NOTHING_CHOSEN, kind="")
            return
        self.chosen = change = next((row for row in found if row.id == change.id), change)
        if problem := refusal(change):
            self.refuse(problem, "warning")
            return
        plan = await self.feed.ask(lambda admin: plan_undo(admin, change, force=force))
        self.plan = plan
        self.query_one("#plan", Rows).show(plan.rows)
        self.say_totals(f"Change {change.id}: {counted(len(plan.rows), 'row')}")
        notes = " ".join(map(ended, plan.notes[:3]))
        if plan.errors:
            self.say(plan.errors[0], "error")
        elif not plan.has_work:
            self.say(f"Everything is as it was before the change. {notes}".strip())
        else:
            self.say(READ_ONLY if self.read_only else notes or "Nothing is changed until you consent.", "")
        self.enter(Stage.PLANNED)

    async def carry_out(self) -> None:
        plan, keeper = self.plan, self.keeper()
        assert plan is not None
        done = await self.feed.ask(lambda admin: carry_out_undo(admin, plan, keeper))
        self.note_outcome([row for row in done if row.status != "same"])
        self.query_one("#plan", Rows).show(done)
        failed = [row.error for row in done if row.error]
        if failed:
            self.say(f"{len(failed)} of {len(done)} failed: {ended(failed[0].message)}", "error")
        else:
            self.say("Done: the change was taken back. Its undo is a change of the journal, too.", "good")
        self.enter(Stage.CHANGED)

    def changing(self) -> list[str]:
        return self.plan.names if self.plan is not None and self.plan.has_work else []

    def consent_word(self) -> tuple[str, str]:
        if self.plan is None or not self.plan.has_work:
            return "", ""
        names, cluster = self.changing(), self.feed.cluster
        if len(names) == 1:
            return names[0], "the name"
        if cluster.must_confirm and cluster.context:
            return cluster.context, "the name of the context"
        return (str(len(names)), "how many names change") if names else (self.plan.change.id, "the id of the change")

    def obstacle(self) -> str:
        return "" if self.plan is not None and self.plan.has_work else "There is nothing to take back."

    def verb(self) -> str:
        return "Take it back"

    def words(self) -> list[str]:
        if self.chosen is None:
            return []
        names = [*self.chosen.groups, *(self.plan.names if self.plan else ())]
        return command_line.undo(self.feed.cluster, self.chosen.id, list(dict.fromkeys(names)), force=self.forces)

    def detail(self, row: Row) -> str:
        return f"{_what(row)}: {_status(row)}"


def _ago(row: JournalRow) -> str:
    return cells.age(max(0.0, time.time() - row.time_ms / 1000))


def _outcome(row: JournalRow) -> str:
    return "undone" if row.undone_by else printable(row.outcome)


def _what(row: Row) -> str:
    if isinstance(row, ItemRow):
        return cells.name(f"{row.name} {row.setting}" if row.setting else row.name)
    place = f" {row.topic}-{row.partition}" if row.topic is not None else ""
    return cells.name(f"{row.group}{place}")


def _now(row: Row) -> str:
    return cells.name(row.old_value) if isinstance(row, ItemRow) else cells.count(row.old_offset)


def _then(row: Row) -> str:
    if isinstance(row, ItemRow):
        return cells.name(row.new_value)
    return cells.count(row.new_offset) if row.topic is not None else MISSING


def _planned(row: Row) -> str:
    if isinstance(row, ItemRow):
        return WILL.get(row.action, row.action)
    if row.topic is None:
        return "will be deleted"
    return "will be committed" if row.new_offset is not None else "will be deleted"


def _status(row: Row) -> str:
    if row.error:
        return printable(f"failed: {row.error.message}")
    status = _planned(row) if row.status == PLANNED else row.status
    return printable(f"{status}: {row.note}" if row.note else status)
