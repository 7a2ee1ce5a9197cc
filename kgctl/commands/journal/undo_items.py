"""Takes back what changed besides groups."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from broker.light_dataclasses import replace
from kgctl.client.net.errors import Precondition
from kgctl.commands.shared.journaling import keeper
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import Settings
from kgctl.journal.carrying import carry_out_items
from kgctl.journal.journal import results_of
from kgctl.journal.results import FAILED
from kgctl.journal.reversal import NOT_UNDOABLE, SAME, obstacle, read_now, steps_of
from kgctl.model.changes import DONE, SKIPPED
from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.model.plans import Entry, JournalRow

ITEMS = "plan-items"


def undo_items(chosen: Settings, admin: Admin, entry: Entry, row: JournalRow, *, force: bool, execute: bool) -> None:
    """Items that failed then are left alone; those that cannot be taken back are rows that say what to do instead."""
    results = results_of(os.environ, row)
    items = [item for item in entry.items if not results.of(item.key).startswith((FAILED, SKIPPED))]
    steps = steps_of(items, read_now(admin, items), force=force)
    rows = [step.row for step in steps]
    errors = [row.error for row in rows if row.error]
    if execute and not errors and any(step.item for step in steps):
        wanted = [step.item for step in steps if step.item is not None]
        rows, _ = keeper(chosen).change(
            admin,
            "undo",
            lambda: wanted,
            lambda: carry_out_items(admin, steps),
            lambda result: result[1],
            undoes=entry.id,
        )
    elif execute:
        rows = [replace(one, status=SKIPPED) if one.status == "planned" else one for one in rows]
    chosen.show(rows, kind=ITEMS)
    lost = [one for one in rows if one.status == NOT_UNDOABLE]
    for one in lost[:20]:
        note(f"{one.name[:1].upper()}{one.name[1:]}: {one.note}.")
    if not items:
        note("There is nothing left to take back: the change failed.")
        return
    if all(obstacle(item) is not None for item in items):
        raise Precondition(f"change {entry.id} cannot be undone; `kgctl journal` has the IDs of others")
    if all(one.status in (SAME, NOT_UNDOABLE) for one in rows):
        note(
            "Everything else is as it was before the change." if lost else "Everything is as it was before the change."
        )
        return
    failed = [one.error for one in rows if one.error]
    note_dry_run(execute, [one.error for one in rows], all_or_nothing=True)
    if execute and failed and not any(one.status == DONE for one in rows):
        note("Nothing was changed.")
    conclude(failed, len(failed) + any(one.status == DONE for one in rows))
