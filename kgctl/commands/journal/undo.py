"""`kgctl undo`: give groups back what a change took from them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.client.admin.reset import MOVED
from kgctl.client.net.errors import KgctlError, NotFound, Precondition
from kgctl.commands.journal.apply import Force
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import check_change, decides_itself, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, now_ms
from kgctl.commands.shared.plan_execution import KIND, conclude_plan, execute_all
from kgctl.commands.shared.settings import settings
from kgctl.journal.execution import Checked, check, rows_of
from kgctl.journal.journal import FAILED, RUNNING, Journal
from kgctl.journal.making import plan_of
from kgctl.journal.undoing import Undo, offset_keys, undo_of
from kgctl.model.failure import RowError
from kgctl.model.plans import DELETION, OFFSETS, Entry, JournalRow, Plan, StoredGroup
from kgctl.render import note

VERB = "undo"
EPILOG = examples(
    "kgctl undo",
    "kgctl undo --execute",
    "kgctl undo 20260131-120000-1a2b --execute",
)


@shows(KIND)
@journaled
@decides_itself
def undo(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[ID]", show_default=False)] = None,
    force: Force = False,
    execute: Execute = False,
) -> None:
    """Take back a change that is in the journal.

    Each committed offset gets the value that it had before, with its metadata; offsets that were not there are deleted,
    a deleted group gets its offsets back. Without ID, it is the newest change of this cluster that has not been taken back.
    Without --execute the plan is shown and nothing changes.

    A group whose offsets have changed since is refused, unless --force is given. The removal of members cannot be
    undone: consumers that run rejoin by themselves. An undo is a change, too: its ID takes it back.
    """
    with settings(ctx).admin() as admin:
        journal = Journal(os.environ, admin.cluster_id())
        row = _chosen(journal, name)
        entry = journal.entry(row.id)
        names = [group.group for group in entry.plan.groups]
        if execute:
            check_change(ctx, names, f"`{ctx.command_path}` with --execute")
        states = admin.group_states(names)
        found = undo_of(entry, states, admin.leader_epochs(offset_keys(entry)))
        plan = plan_of(VERB, entry.plan.cluster_id, now_ms(), found.groups, f"undo of {row.id}")
        checked = _checked(plan, states, found, force=force)
        rows = execute_all(settings(ctx), admin, plan, checked, states, undoes=row.id) if execute else rows_of(checked)
    note(f"Change {row.id}: {row.command}")
    for sentence in found.notes[:20]:
        note(sentence)
    if not plan.groups and not found.errors:
        _refuse_nothing(entry, row)
    conclude_plan(settings(ctx), rows, execute=execute, errors=[error.as_row() for error in found.errors.values()])


def _chosen(journal: Journal, name: str | None) -> JournalRow:
    """The change to take back. Raises NotFound, and Precondition for one that is still running."""
    rows = journal.rows()
    if name is None:
        open_ones = [
            row for row in rows if row.verb != VERB and row.undone_by is None and row.outcome not in (FAILED, RUNNING)
        ]
        if not open_ones:
            raise NotFound(f"there is no change to take back in {journal.folder}")
        return open_ones[-1]
    row = next((row for row in rows if row.id == name), None)
    if row is None:
        raise NotFound(f"there is no change {name!r} of this cluster in {journal.folder}; see `kgctl journal`")
    if row.outcome == RUNNING:
        raise Precondition(f"change {name} is still running")
    return row


def _checked(
    plan: Plan, states: Mapping[str, StoredGroup | KgctlError], found: Undo, *, force: bool
) -> Sequence[Checked]:
    """The groups are compared with the change, not with a plan that was just made from them."""
    checked = check(plan, states, force=True)
    if force:
        return checked
    problems = {group: RowError(MOVED, sentence) for group, sentence in found.problems.items()}
    return [replace(one, error=problems.get(one.plan.group, one.error)) for one in checked]


def _refuse_nothing(entry: Entry, row: JournalRow) -> None:
    if not any(group.action in (OFFSETS, DELETION) for group in entry.plan.groups):
        raise Precondition(
            f"change {row.id} cannot be undone: it changed no committed offsets; `kgctl journal` has the IDs of others"
        )
    note("All committed offsets are as they were before the change.")
