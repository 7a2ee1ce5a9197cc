"""`kgctl journal show`: one change, and what was there before."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.plan_execution import KIND
from kgctl.commands.shared.settings import settings
from kgctl.journal.execution import Checked, rows_of
from kgctl.journal.journal import find_entry
from kgctl.model.plans import ChangeRow
from kgctl.render import note

EPILOG = examples("kgctl journal show 20260131-120000-1a2b", "kgctl journal show 20260131-120000-1a2b -o json")


@shows(KIND)
@local
def show(ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="ID", show_default=False)]) -> None:
    """Show what one change did, and what was there before.

    The rows are the steps that were planned; the outcome of the change as a whole is on stderr.
    """
    entry, row = find_entry(os.environ, name)
    rows: list[ChangeRow] = rows_of([Checked(group) for group in entry.plan.groups])
    settings(ctx).show(rows, kind=KIND)
    where = f"cluster {row.cluster_id}" + (f", context {row.context}" if row.context else f", {row.address}")
    note(f"{row.command}")
    note(f"By {row.user} on {row.host}; {where}.")
    message = f": {row.message}" if row.message else ""
    undone = f" Taken back by {row.undone_by}." if row.undone_by else ""
    note(f"Outcome: {row.outcome}{message}.{undone}")
