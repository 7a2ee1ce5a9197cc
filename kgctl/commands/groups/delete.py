"""`kgctl groups delete`: delete groups without members."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import changes
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings

EPILOG = examples("kgctl groups delete old-orders", "kgctl groups delete old-orders old-payments --execute")


@changes(names="groups", when="execute")
def delete(
    ctx: typer.Context,
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", show_default=False, callback=not_empty)],
    execute: Execute = False,
) -> None:
    """Delete groups that have no members, and their offsets."""
    with settings(ctx).admin() as admin:
        rows = admin.plan_group_deletion(groups)
        if execute:
            rows = admin.delete_groups(rows)
    settings(ctx).show(rows, kind="group-deletion")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))
