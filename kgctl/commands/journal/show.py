"""`kgctl journal show`: one change, and what was there before."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.commands.journal.undo_items import ITEMS
from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.plan_execution import KIND
from kgctl.commands.shared.settings import settings
from kgctl.journal.execution import Checked, rows_of
from kgctl.journal.journal import find_entry, results_of
from kgctl.journal.results import Results, row_key
from kgctl.journal.reversal import obstacle
from kgctl.model.items import Item, ItemRow
from kgctl.render import note

EPILOG = examples("kgctl journal show 20260131-120000-1a2b", "kgctl journal show 20260131-120000-1a2b -o json")


@shows(KIND, ITEMS)
@local
def show(ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="ID", show_default=False)]) -> None:
    """Show what one change did, and what was there before.

    Each row says what became of it: done, failed and why, skipped, or unknown if an answer was lost. The outcome of the
    change as a whole is on stderr.
    """
    entry, row = find_entry(os.environ, name)
    results = results_of(os.environ, row)
    if entry.items:
        settings(ctx).show([_item_row(item, results) for item in entry.items], kind=ITEMS)
    else:
        rows = rows_of([Checked(group) for group in entry.plan.groups])
        settings(ctx).show([replace(one, status=results.of(row_key(one))) for one in rows], kind=KIND)
    where = f"cluster {row.cluster_id}" + (f", context {row.context}" if row.context else f", {row.address}")
    note(f"{row.command}")
    note(f"By {row.user} on {row.host}; {where}.")
    message = f": {row.message}" if row.message else ""
    undone = f" Taken back by {row.undone_by}." if row.undone_by else ""
    note(f"Outcome: {row.outcome}{message}.{undone}")


def _item_row(item: Item, results: Results) -> ItemRow:
    """The obstacle, if any, is what an undo would say."""
    note = obstacle(item) or _kept(item)
    status = results.of(item.key)
    return ItemRow(item.kind, item.subject, item.action, item.setting, item.old, item.new, note, status)


def _kept(item: Item) -> str | None:
    """What is kept of a deleted topic."""
    if item.partitions is None:
        return None
    configs = ", ".join(f"{one.name}={one.value}" for one in item.configs)
    return f"partitions={item.partitions}, replicas={item.replicas}{f', {configs}' if configs else ''}"
