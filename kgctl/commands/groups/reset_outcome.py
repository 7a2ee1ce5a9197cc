"""What `kgctl groups reset-offsets` prints: the plan or its outcome as a table, a summary or CSV, and sentences about it."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kgctl.commands.groups.selection import Selection
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.model.changes import DONE, FAILED, PLANNED, SKIPPED, ResetPlan, ResetRow, ResetSummary
from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, SHARE
from kgctl.render import note
from kgctl.watch.figures import counted

if TYPE_CHECKING:
    from kgctl.commands.shared.settings import Settings

MOST_ROWS, MOST_NOTES = 100, 10


class Outcome:
    """The plans, or with `execute` what became of them."""

    def __init__(
        self, plans: Sequence[ResetPlan], left_out: Sequence[str], selection: Selection, *, execute: bool, drain: bool
    ) -> None:
        self.plans = plans
        self.left_out = left_out
        self.selection = selection
        self.execute = execute
        self.drain = drain
        self.rows = [row for plan in plans for row in plan.rows]

    def show(self, settings: Settings, *, export: bool, verbose: bool) -> None:
        without_rows = [plan.error for plan in self.plans if plan.error and not plan.rows]
        if export:
            self._export()
        elif len(self.rows) > MOST_ROWS and settings.output == "table" and not (verbose or settings.columns):
            settings.show(summaries(self.plans), kind="offset-reset-summary", errors=without_rows)
            note(f"A summary of {len(self.rows)} partitions; --verbose shows each.")
        else:
            settings.show(self.rows, kind="offset-reset", errors=without_rows)
        if len(self.plans) > 1 or len(self.rows) > MOST_ROWS:
            note(_total(self.plans))
        if self.left_out:
            note(f"{counted(len(self.left_out), 'group')} with nothing in this scope left out.")
        self._note_groups()
        if not export and not (self._active and not self.drain and len(self.plans) == 1):
            is_one = len(self.plans) == 1
            note_dry_run(
                self.execute,
                [row.error for row in self.rows] if is_one else [_first_error(plan) for plan in self.plans],
                all_or_nothing=is_one,
                options="--execute --drain" if self._active and self.drain else "--execute",
                noun="row" if is_one else "group",
            )

    def conclude(self) -> None:
        """A group whose plan fails is left alone as a whole; only the execution of a plan can fail in part."""
        errors: list[RowError | None] = [*self.selection.errors]
        for plan in self.plans:
            errors += [plan.error] if plan.error else [row.error for row in plan.rows if row.error]
        is_partial = any(row.status == DONE for row in self.rows) or any(not plan.failed for plan in self.plans)
        conclude(errors, len(errors) + is_partial)

    @property
    def _active(self) -> list[ResetPlan]:
        return [plan for plan in self.plans if plan.is_active and not plan.error]

    def _export(self) -> None:
        """As Kafka's tool: three columns for one named group, four for several."""
        writer = csv.writer(sys.stdout, lineterminator="\n")
        for row in self.rows:
            if not row.error:
                names = () if self.selection.is_one else (row.group,)
                writer.writerow((*names, row.topic, row.partition, row.new_offset))
            if row.note:
                note(f"Note: {row.topic}-{row.partition}: {row.note}")

    def _note_groups(self) -> None:
        sentences = []
        for plan in self.plans:
            if plan.state is None and not plan.error:
                sentences.append(self._about_creation(plan))
            if plan.is_active and not plan.error and not self.execute:
                sentences.append(self._about_members(plan))
        for sentence in sentences[:MOST_NOTES]:
            note(sentence)
        if len(sentences) > MOST_NOTES:
            note(f"And the same of {counted(len(sentences) - MOST_NOTES, 'other group')}.")
        if self.execute and not any(row.status == DONE for row in self.rows):
            note("Nothing was changed.")

    def _about_creation(self, plan: ResetPlan) -> str:
        if self.execute and any(row.status == DONE for row in plan.rows):
            return f"Created consumer group '{plan.group}', which did not exist."
        if self.execute or plan.failed:
            return f"Consumer group '{plan.group}' does not exist."
        return f"Consumer group '{plan.group}' does not exist yet; --execute creates it."

    def _about_members(self, plan: ResetPlan) -> str:
        members, noun = counted(len(plan.members), "member"), "Share" if plan.type == SHARE else "Consumer"
        if self.drain and plan.type == CLASSIC:
            return (
                f"Consumer group '{plan.group}' is {plan.state}: --execute --drain evicts its {members}. Running consumers "
                "rejoin and continue from the new offsets."
            )
        if self.drain:
            return (
                f"{noun} group '{plan.group}' is {plan.state}: --execute --drain waits until its {members} have left; "
                f"members of a group of type {plan.type} cannot be evicted."
            )
        how = "Stop its consumers, or add --drain."
        if plan.type != CLASSIC:
            how = f"Stop its consumers; members of a group of type {plan.type} cannot be evicted."
        return (
            f"Warning: {noun} group '{plan.group}' is {plan.state}: --execute is refused while it has members, "
            f"and {'they' if plan.type == SHARE else 'their commits'} may change the plan. {how}"
        )


def summaries(plans: Sequence[ResetPlan]) -> list[ResetSummary]:
    """A row for each topic of each group."""
    found = []
    for plan in plans:
        topics: dict[str, list[ResetRow]] = {}
        for row in plan.rows:
            topics.setdefault(row.topic, []).append(row)
        for topic, rows in topics.items():
            moves = [row.delta for row in rows if row.delta is not None and not row.error]
            statuses = {row.status for row in rows}
            found.append(
                ResetSummary(
                    plan.group,
                    topic,
                    len(rows),
                    sum(-delta for delta in moves if delta < 0),
                    sum(delta for delta in moves if delta > 0),
                    next(status for status in (FAILED, SKIPPED, PLANNED, DONE) if status in statuses),
                    plan.error or next((row.error for row in rows if row.error), None),
                )
            )
    return found


_OF_SHARE_GROUPS = ("--to-earliest", "--to-latest", "--to-datetime")


def explain_classic(
    settings: Settings,
    tool: str,
    selection: Selection,
    topics: Sequence[str],
    all_topics: bool,
    strategy: str,
    value: Any,
    *,
    execute: bool,
) -> None:
    """Name the command of Kafka's tool; it has neither patterns nor --to-group, and for share groups few strategies."""
    if "share" in tool and strategy not in _OF_SHARE_GROUPS:
        return
    if selection.pattern is not None or strategy == "--to-group" or not (topics or all_topics or value):
        return
    groups = [word for name in selection.names for word in ("--group", name)] or ["--all-groups"]
    scope = [word for topic in topics for word in ("--topic", topic)] or ["--all-topics"] * all_topics
    given = [strategy] if value is True else [strategy, str(value)]
    settings.explain_as(tool, "--reset-offsets", *groups, *scope, *given, "--execute" if execute else "--dry-run")


def _first_error(plan: ResetPlan) -> RowError | None:
    return plan.error or next((row.error for row in plan.rows if row.error), None)


def _total(plans: Sequence[ResetPlan]) -> str:
    good = [plan for plan in plans if not plan.failed]
    moves = [row.delta for plan in good for row in plan.rows if row.delta]
    partitions = sum(len(plan.rows) for plan in good)
    again, skipped = -sum(move for move in moves if move < 0), sum(move for move in moves if move > 0)
    failed = len(plans) - len(good)
    others = f"; {counted(failed, 'group')} with errors" if failed else ""
    return (
        f"{counted(len(good), 'group')}, {counted(partitions, 'partition')}: {again:,} records to read again, "
        f"{skipped:,} to skip{others}."
    )
