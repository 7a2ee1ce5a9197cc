"""`kgctl journal list`: the changes that were made from this machine."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.journal.journal import all_rows
from kgctl.journal.places import journal_folder
from kgctl.render import note

EPILOG = examples(
    "kgctl journal",
    "kgctl journal -n 5 --group orders",
    "kgctl journal --name 'topic orders'",
    "kgctl journal list -o wide",
    "kgctl journal list -o json",
)


@shows("journal")
@local
def list_changes(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, help="Show only the newest N.")] = 50,
    group: Annotated[
        str | None, typer.Option("--group", metavar="GROUP", help="Only changes of this group. [default: all]")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="TEXT", help="Only changes of groups and other things named so. [default: all]"),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="ID", help="Only changes of this cluster. [default: all]")
    ] = None,
) -> None:
    """List changes, the newest last.

    Shows changes of all clusters that this user made from this machine, and opens no connection. An outcome of
    `unfinished` means that a command was killed, `unknown` that an answer was lost: `kgctl undo` finds out what changed. The journal keeps the last 1000 changes of
    each cluster for 90 days.
    """
    rows = all_rows(os.environ)
    found = [
        row
        for row in rows
        if (group is None or group in row.groups)
        and (name is None or any(name in one for one in (*row.groups, *row.items)))
        and (cluster is None or cluster == row.cluster_id)
    ]
    settings(ctx).show(found[-limit:], kind="journal")
    if not rows:
        note(f"There is no change in {journal_folder(os.environ)}.")
