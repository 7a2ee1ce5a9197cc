"""`kgctl groups remove-members`: remove members of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.client.admin.removals import Members
from kgctl.client.net.errors import KgctlError, NotFound, from_row
from kgctl.commands.groups.selection import AllGroups, Groups, Match, selected
from kgctl.commands.shared.arguments import Execute, only_one
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import carry_out, planned
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.journal.making import of_removals
from kgctl.model.changes import FAILED, MemberChange
from kgctl.model.groups import CLASSIC
from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

EPILOG = examples(
    "kgctl groups remove-members orders --all",
    "kgctl groups remove-members orders --instance worker-3 --execute",
    "kgctl groups remove-members --all-groups --host 10.0.0.7 --execute",
    "kgctl groups remove-members orders --all --plan orders.json",
)


@shows("member-removal")
@changes(names="groups", when="execute")
@planned
def remove_members(
    ctx: typer.Context,
    groups: Groups = None,
    match: Match = None,
    all_groups: AllGroups = False,
    member: Annotated[
        list[str] | None, typer.Option("--member", metavar="ID", help="Member id to remove; repeatable.")
    ] = None,
    instance: Annotated[
        list[str] | None,
        typer.Option("--instance", metavar="ID", help="Group instance id of a static member to remove; repeatable."),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="HOST", help="Remove members on this host, as described; repeatable."),
    ] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Remove all members.")] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason, which the broker logs. [default: none]")
    ] = "",
    execute: Execute = False,
) -> None:
    """Remove members of groups, which triggers a rebalance.

    A consumer that is still running rejoins. Use --instance for static members, which do not leave when they stop.
    """
    only_one({"--all": everyone, "--member": member})
    only_one({"--all": everyone, "--instance": instance})
    only_one({"--all": everyone, "--host": host})
    if not (member or instance or host or everyone):
        ctx.fail("Name members with --member, --instance or --host, or give --all.")
    selection = selected(ctx, groups, match, all_groups, types=(CLASSIC,))
    wanted = Members(member or (), instance or (), host or (), everyone)
    with settings(ctx).admin() as admin:
        names = selection.groups(admin)
        plan = admin.plan_member_removals(names, wanted, known_only=selection.is_listed)
        if selection.is_one and plan and plan[0].error and not (plan[0].consumer_id or plan[0].group_instance_id):
            raise from_row(plan[0].error)
        if selection.is_listed and not plan:
            raise NotFound("None of these groups has such a member.")
        rows = carry_out(
            settings(ctx),
            admin,
            "remove-members",
            plan,
            [row.group for row in plan if not row.error],
            lambda states: of_removals(plan, states),
            lambda: _remove(admin, plan, reason),
            execute=execute,
            reason=reason,
        )
    settings(ctx).show(rows, kind="member-removal", errors=selection.errors)
    if selection.is_one and not rows:
        note(f"Consumer group '{selection.names[0]}' has no active members.")
    note_dry_run(execute, [row.error for row in rows])
    conclude([*selection.errors, *(row.error for row in rows)], len(rows) + len(selection.errors))


def _remove(admin: Admin, plan: Sequence[MemberChange], reason: str) -> list[MemberChange]:
    """Group by group; one that fails as a whole does not stop the others."""
    done: list[MemberChange] = []
    for group in dict.fromkeys(row.group for row in plan):
        rows = [row for row in plan if row.group == group]
        try:
            done += admin.remove_members(group, rows, reason)
        except KgctlError as error:
            done += [row if row.error else replace(row, status=FAILED, error=error.as_row()) for row in rows]
    return done
