"""`kgctl undo`: take a change back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import NotFound, Precondition
from kgctl.commands.journal.apply import Force
from kgctl.commands.journal.undo_items import undo_items
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import check_change, decides_itself, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled
from kgctl.commands.shared.plan_execution import KIND, conclude_plan, execute_all
from kgctl.commands.shared.settings import settings
from kgctl.journal.execution import rows_of
from kgctl.journal.journal import Journal
from kgctl.journal.keeping import now_ms
from kgctl.journal.making import plan_of
from kgctl.journal.results import FAILED, RUNNING
from kgctl.journal.undoing import can_undo, checked_undo, created_groups, offset_keys, remove_created, undo_of
from kgctl.model.plans import Entry, JournalRow
from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

VERB = "undo"
EPILOG = examples(
    "kgctl undo",
    "kgctl undo --execute",
    "kgctl undo 20260131-120000-1a2b --execute",
)


@shows(KIND, "plan-items")
@journaled
@decides_itself
def undo(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[ID]", show_default=False)] = None,
    force: Force = False,
    execute: Execute = False,
) -> None:
    """Take back a change that is in the journal.

    Committed offsets, configs, quotas and ACLs get the values that they had before; what the change created is deleted,
    and a deleted group gets its offsets back. A deleted topic is created again, but empty. Each row says whether it can be
    taken back, or what to do instead. Without ID, it is the newest change of this cluster that can be taken back and has
    not been. Without --execute the plan is shown and nothing changes.

    What has changed since is refused, unless --force is given. An undo is a change, too: its ID takes it back.
    """
    with settings(ctx).admin() as admin:
        journal = Journal(os.environ, admin.cluster_id())
        row, entry = _chosen(journal, name)
        if execute:
            names = [group.group for group in entry.plan.groups]
            names += [name for item in entry.items for name in item.names]
            check_change(ctx, list(dict.fromkeys(names)), f"`{ctx.command_path}` with --execute")
        if entry.items:
            note(f"Change {row.id}: {row.command}")
            undo_items(settings(ctx), admin, entry, row, force=force, execute=execute)
        else:
            _undo_groups(ctx, admin, entry, row, force=force, execute=execute)


def _undo_groups(
    ctx: typer.Context, admin: Admin, entry: Entry, row: JournalRow, *, force: bool, execute: bool
) -> None:
    states = admin.group_states([group.group for group in entry.plan.groups])
    found = undo_of(entry, states, admin.leader_epochs(offset_keys(entry)))
    plan = plan_of(VERB, entry.plan.cluster_id, now_ms(), found.groups, f"undo of {row.id}")
    checked = checked_undo(plan, states, found, force=force)
    created = created_groups(entry)
    if execute:
        rows = execute_all(
            settings(ctx),
            admin,
            plan,
            checked,
            states,
            undoes=row.id,
            then=lambda done: remove_created(admin, done, created),
        )
    else:
        rows = rows_of(checked)
        found.notes += [
            f"Group {plan.group!r} did not exist before: it is deleted, too, if it has no other offsets and no members."
            for plan in found.groups
            if plan.group in created
        ]
    note(f"Change {row.id}: {row.command}")
    for sentence in found.notes[:20]:
        note(sentence)
    if not plan.groups and not found.errors:
        if not can_undo(entry):
            raise Precondition(
                f"change {row.id} cannot be undone: it changed no committed offsets; `kgctl journal` has the IDs of others"
            )
        note("All committed offsets are as they were before the change.")
    conclude_plan(settings(ctx), rows, execute=execute, errors=[error.as_row() for error in found.errors.values()])


def _chosen(journal: Journal, name: str | None) -> tuple[JournalRow, Entry]:
    """The change to take back. Raises NotFound, and Precondition for one that is still running."""
    rows = journal.rows()
    if name is None:
        return _newest(journal, rows)
    row = next((row for row in rows if row.id == name), None)
    if row is None:
        raise NotFound(f"there is no change {name!r} of this cluster in {journal.folder}; see `kgctl journal`")
    if row.outcome == RUNNING:
        raise Precondition(f"change {name} is still running")
    return row, journal.entry(row.id)


def _newest(journal: Journal, rows: Sequence[JournalRow]) -> tuple[JournalRow, Entry]:
    for row in reversed(rows):
        if row.verb == VERB or row.undone_by is not None or row.outcome in (FAILED, RUNNING):
            continue
        entry = journal.entry(row.id)
        if can_undo(entry):
            return row, entry
        note(f"Skipped change {row.id}, which cannot be undone: {row.command}")
    raise NotFound(f"there is no change to take back in {journal.folder}")
