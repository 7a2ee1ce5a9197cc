"""`kgctl groups diff`: compare snapshots of groups."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import BadValue
from kgctl.commands.groups.snapshot import take
from kgctl.commands.shared.arguments import not_empty
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.exit_codes import CONDITION_NOT_MET
from kgctl.journal.differences import differences
from kgctl.journal.documents import read_file
from kgctl.model.failure import RowError
from kgctl.model.plans import Snapshot
from kgctl.render import note

KIND, LIVE = "group-diff", "live"
EPILOG = examples(
    "kgctl groups diff before.json",
    "kgctl groups diff before.json after.json -o json",
)


@shows(KIND)
@reads
def diff(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", show_default=False, callback=not_empty)],
    other: Annotated[str, typer.Argument(metavar="[FILE|live]", show_default=False, callback=not_empty)] = LIVE,
) -> None:
    """Compare a snapshot with another one, or with the cluster.

    Exit code 3 if they differ: in the groups, their types, their committed offsets or metadata. States and members do not
    count. With `live`, which is the default, only groups of FILE are compared.
    """
    old = read_snapshot(file)
    errors: list[RowError] = []
    if other == LIVE:
        with settings(ctx).admin() as admin:
            new, errors = take(admin, [group.group for group in old.groups], must_exist=False)
    else:
        new = read_snapshot(other)
    if old.cluster_id != new.cluster_id:
        note("Note: the snapshots are of different clusters, where the same offset may be another record.")
    unread = {group.group for group in old.groups} - {group.group for group in new.groups} if errors else set()
    rows = differences([group for group in old.groups if group.group not in unread], new.groups)
    settings(ctx).show(rows, kind=KIND, errors=errors)
    conclude(errors, len(errors) + len(new.groups))
    if not rows and not errors:
        note("No differences.")
    if rows:
        note(f"{len(rows)} differences." if len(rows) > 1 else "1 difference.")
        raise typer.Exit(CONDITION_NOT_MET)


def read_snapshot(file: str) -> Snapshot:
    """Raises BadParameter for a file that is not a snapshot."""
    try:
        found = read_file(Snapshot, Path(file))
        names = [group.group for group in found.groups]
        if len(set(names)) < len(names) or "" in names:
            raise BadValue(f"{file} is not valid: each group must have a name, and occur once")
    except BadValue as error:
        raise typer.BadParameter(f"{error}.", param_hint="'FILE'") from None
    return found
