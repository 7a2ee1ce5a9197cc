"""`kgctl groups delete`: delete groups without members."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.groups.selection import AllGroups, Groups, Match, selected, tool_of
from kgctl.commands.groups.unused import unused
from kgctl.commands.shared.arguments import Execute, named, only_one
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import carry_out, planned
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.commands.shared.times import parse_duration
from kgctl.journal.making import of_deletions
from kgctl.model.groups import STATES, TYPES
from kgctl.render import note

EPILOG = examples(
    "kgctl groups delete old-orders",
    "kgctl groups delete old-orders old-payments --execute",
    "kgctl groups delete --match 'console-consumer-.*' --state Empty",
    "kgctl groups delete --all-groups --unused-for 30d",
    "kgctl groups delete --match 'tmp-.*' --plan tmp.json",
)


@shows("group-deletion")
@changes(names="groups", when="execute")
@planned
def delete(
    ctx: typer.Context,
    groups: Groups = None,
    match: Match = None,
    all_groups: AllGroups = False,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE[,...]", help="Only listed groups in these states. [default: all]")
    ] = None,
    type_: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE[,...]", help="Only listed groups of these types. [default: all]"),
    ] = None,
    unused_for: Annotated[
        str | None,
        typer.Option(
            "--unused-for",
            metavar="DURATION",
            help="Only listed groups without members and commits for that long, such as 7d. [default: any]",
        ),
    ] = None,
    execute: Execute = False,
) -> None:
    """Delete groups that have no members, and their offsets.

    A group that has members is an error, and does not stop the others. With --unused-for, groups whose age is not known
    are left out.
    """
    only_one({"GROUP": groups, "--state": state})
    only_one({"GROUP": groups, "--type": type_})
    only_one({"GROUP": groups, "--unused-for": unused_for})
    age_ms = None if unused_for is None else parse_duration(unused_for, "--unused-for")
    states, types = named(state, STATES, "--state"), named(type_, TYPES, "--type")
    selection = selected(ctx, groups, match, all_groups, states=states, types=types)
    with settings(ctx).admin() as admin:
        names = selection.groups(admin)
        if age_ms is not None:
            names = unused(admin, settings(ctx), names, age_ms)
        plan = admin.plan_group_deletion(names) if names else []
        if not selection.is_listed:
            named_groups = [word for name in selection.names for word in ("--group", name)]
            settings(ctx).explain_as(tool_of(admin, selection.names), "--delete", *named_groups)
        rows = carry_out(
            settings(ctx),
            admin,
            "delete",
            plan,
            [row.group for row in plan if not row.error],
            lambda states: of_deletions(plan, states),
            lambda: admin.delete_groups(plan),
            execute=execute,
        )
    settings(ctx).show(rows, kind="group-deletion", errors=selection.errors)
    if selection.is_listed:
        good = sum(not row.error for row in rows)
        note(f"{good} of {len(rows)} groups {'deleted' if execute else 'can be deleted'}.")
    note_dry_run(execute, [row.error for row in rows])
    conclude([*selection.errors, *(row.error for row in rows)], len(rows) + len(selection.errors))
