"""`kgctl apply`: apply a plan that a command wrote with --plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import BadValue, Precondition
from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import check_change, decides_itself, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled
from kgctl.commands.shared.plan_execution import KIND, conclude_plan, execute_all
from kgctl.commands.shared.settings import settings
from kgctl.journal.documents import read, read_file
from kgctl.journal.execution import check, rows_of
from kgctl.model.plans import Plan

EPILOG = examples(
    "kgctl groups reset-offsets orders --all-topics --to-earliest --plan a.json",
    "kgctl apply a.json",
    "kgctl apply a.json --execute",
)

Force = Annotated[
    bool, typer.Option("--force", help="Apply the plan also to groups that have changed since it was made.")
]


@shows(KIND)
@journaled
@decides_itself
def apply(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", show_default=False, callback=not_empty)],
    force: Force = False,
    execute: Execute = False,
) -> None:
    """Apply a plan that a command wrote with --plan.

    Without --execute the plan is compared with the groups as they are, and nothing changes. A group that has changed
    since (its state, its members, or the committed offsets of the plan) is an error, exit code 6, and then nothing is
    applied. --force applies the plan all the same. A plan for another cluster is always refused. - reads the plan from
    stdin.
    """
    plan = read_plan(file)
    if execute:
        check_change(ctx, [group.group for group in plan.groups], f"`{ctx.command_path}` with --execute")
    with settings(ctx).admin() as admin:
        refuse_other_cluster(file, plan, admin.cluster_id())
        states = admin.group_states([group.group for group in plan.groups])
        checked = check(plan, states, force=force)
        rows = execute_all(settings(ctx), admin, plan, checked, states) if execute else rows_of(checked)
    conclude_plan(settings(ctx), rows, execute=execute)


def read_plan(file: str) -> Plan:
    """Raises BadParameter for a file that is not a plan."""
    try:
        plan = read(Plan, sys.stdin.buffer.read(), "stdin") if file == "-" else read_file(Plan, Path(file))
        names = [group.group for group in plan.groups]
        if len(set(names)) < len(names) or "" in names:
            raise BadValue(f"{file} is not valid: each group must have a name, and one plan")
    except BadValue as error:
        raise typer.BadParameter(f"{error}.", param_hint="'FILE'") from None
    return plan


def refuse_other_cluster(file: str, plan: Plan, cluster_id: str) -> None:
    if plan.cluster_id != cluster_id:
        raise Precondition(
            f"{file} is a plan for cluster {plan.cluster_id or 'without an id'}, and this is cluster {cluster_id}; choose "
            "its cluster with --context or --bootstrap"
        )
