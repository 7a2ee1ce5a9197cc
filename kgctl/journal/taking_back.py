"""Takes one change of the journal back for a program that shows the plan first: all kinds of changes alike."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass, field, replace
from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.journal.carrying import carry_out_items
from kgctl.journal.execution import Checked, execute, rows_of
from kgctl.journal.journal import Journal, results_of
from kgctl.journal.keeping import Keeper, now_ms
from kgctl.journal.making import plan_of, snapshot_of
from kgctl.journal.results import FAILED as CHANGE_FAILED
from kgctl.journal.results import RUNNING
from kgctl.journal.reversal import Step, read_now, steps_of
from kgctl.journal.undoing import can_undo, checked_undo, created_groups, offset_keys, remove_created, undo_of
from kgctl.model.changes import PLANNED, SKIPPED
from kgctl.model.items import ItemRow
from kgctl.model.plans import ChangeRow, Entry, JournalRow, Plan, StoredGroup

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

VERB = "undo"


@dataclass(frozen=True, slots=True)
class TakingBack:
    """What would take a change back. `rows` are its steps; `notes` say what it cannot do."""

    change: JournalRow
    rows: Sequence[ChangeRow | ItemRow]
    notes: Sequence[str] = ()
    plan: Plan | None = None
    checked: Sequence[Checked] = ()
    states: Mapping[str, StoredGroup | KgctlError] = field(default_factory=dict)
    created: Sequence[str] = ()
    steps: Sequence[Step] = ()
    force: bool = False

    @property
    def errors(self) -> list[str]:
        return [row.error.message for row in self.rows if row.error]

    @property
    def names(self) -> list[str]:
        """The groups and other things that would change."""
        if self.plan is not None:
            return [group.group for group in self.plan.groups]
        items = [step.item for step in self.steps if step.item is not None]
        return list(dict.fromkeys(name for item in items for name in item.names))

    @property
    def has_work(self) -> bool:
        return not self.errors and any(row.status == PLANNED for row in self.rows)


def changes_of(admin: Admin) -> list[JournalRow]:
    """The changes of this cluster, newest first. Raises CannotKeep."""
    return list(reversed(Journal(os.environ, admin.cluster_id()).rows()))


def refusal(change: JournalRow) -> str:
    """Why the change should not be taken back; empty if it can be."""
    if change.outcome == RUNNING:
        return "It is still running."
    if change.undone_by is not None:
        return f"Change {change.undone_by} has taken it back."
    return "It failed: there is nothing to take back." if change.outcome == CHANGE_FAILED else ""


def plan_undo(admin: Admin, change: JournalRow, *, force: bool) -> TakingBack:
    """What would take the change back now. Raises Precondition if nothing can, NotFound if its entry is gone."""
    entry = Journal(os.environ, change.cluster_id).entry(change.id)
    if not can_undo(entry):
        raise Precondition(f"change {change.id} cannot be undone")
    return _of_items(admin, entry, change, force) if entry.items else _of_groups(admin, entry, change, force)


def _of_groups(admin: Admin, entry: Entry, change: JournalRow, force: bool) -> TakingBack:
    states = admin.group_states([group.group for group in entry.plan.groups])
    found = undo_of(entry, states, admin.leader_epochs(offset_keys(entry)))
    plan = plan_of(VERB, entry.plan.cluster_id, now_ms(), found.groups, f"undo of {change.id}")
    checked, created = checked_undo(plan, states, found, force=force), created_groups(entry)
    failed = [ChangeRow(name, VERB, status="failed", error=error.as_row()) for name, error in found.errors.items()]
    notes = [
        *found.notes,
        *(f"Group {one.group!r} did not exist before." for one in plan.groups if one.group in created),
    ]
    return TakingBack(change, [*rows_of(checked), *failed], notes, plan, checked, states, created, force=force)


def _of_items(admin: Admin, entry: Entry, change: JournalRow, force: bool) -> TakingBack:
    results = results_of(os.environ, change)
    items = [item for item in entry.items if not results.of(item.key).startswith((CHANGE_FAILED, SKIPPED))]
    steps = steps_of(items, read_now(admin, items), force=force)
    return TakingBack(change, [step.row for step in steps], steps=steps, force=force)


def _planned_again(admin: Admin, undo: TakingBack) -> TakingBack:
    """The same plan from what is there now. Raises Precondition if it is another one: the user has not seen that."""
    change = next((row for row in changes_of(admin) if row.id == undo.change.id), undo.change)
    if problem := refusal(change):
        raise Precondition(problem)
    again = plan_undo(admin, change, force=undo.force)
    if _work(again) != _work(undo):
        reason = f": {again.errors[0]}" if again.errors else ""
        raise Precondition(f"what this changes is not as it was when the plan was made; plan again{reason}")
    return again


def _work(undo: TakingBack) -> tuple[object, ...]:
    return [one.plan for one in undo.checked], [step.item for step in undo.steps], undo.errors


def carry_out_undo(admin: Admin, undo: TakingBack, keeper: Keeper) -> list[ChangeRow | ItemRow]:
    """The rows with their outcome. The undo is a change of the journal, too. Raises Precondition if the plan is out of date."""
    if not undo.has_work:
        return [replace(row, status=SKIPPED) if row.status == PLANNED else row for row in undo.rows]
    undo = _planned_again(admin, undo)
    if undo.plan is None:
        wanted = [step.item for step in undo.steps if step.item is not None]
        done, _ = keeper.change(
            admin,
            VERB,
            lambda: wanted,
            lambda: carry_out_items(admin, undo.steps),
            lambda result: result[1],
            undoes=undo.change.id,
        )
        return list(done)
    plan = undo.plan.with_groups(tuple(one.plan for one in undo.checked))
    known = {name: found for name, found in undo.states.items() if isinstance(found, StoredGroup)}
    before = snapshot_of(plan.cluster_id, now_ms(), (known[one.plan.group] for one in undo.checked))
    rows = keeper.record(
        plan,
        before,
        lambda: remove_created(admin, execute(admin, undo.checked, plan.reason), undo.created),
        undoes=undo.change.id,
    )
    return list(rows)
