"""`kgctl groups remove-members`: remove members of a group."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.arguments import Execute, Group, only_one
from kgctl.commands.shared.effects import changes
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.render import note

EPILOG = examples(
    "kgctl groups remove-members orders --all",
    "kgctl groups remove-members orders --instance worker-3 --execute",
)


@changes(names="group", when="execute")
def remove_members(
    ctx: typer.Context,
    group: Group,
    member: Annotated[
        list[str] | None, typer.Option("--member", metavar="ID", help="Member id to remove; repeatable.")
    ] = None,
    instance: Annotated[
        list[str] | None,
        typer.Option("--instance", metavar="ID", help="Group instance id of a static member to remove; repeatable."),
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Remove all members.")] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason, which the broker logs. [default: none]")
    ] = "",
    execute: Execute = False,
) -> None:
    """Remove members of a group, which triggers a rebalance.

    A consumer that is still running rejoins. Use --instance for static members, which do not leave when they stop.
    """
    only_one({"--all": everyone, "--member": member})
    only_one({"--all": everyone, "--instance": instance})
    if not (member or instance or everyone):
        ctx.fail("Name members with --member or --instance, or give --all.")
    with settings(ctx).admin() as admin:
        rows = admin.plan_member_removal(group, member or (), instance or (), everyone=everyone)
        if execute:
            rows = admin.remove_members(group, rows, reason)
    settings(ctx).show(rows, kind="member-removal")
    if not rows:
        note(f"Consumer group '{group}' has no active members.")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))
