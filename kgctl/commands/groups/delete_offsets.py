"""`kgctl groups delete-offsets`: delete committed offsets of a group."""

from __future__ import annotations

import typer

from kgctl.commands.groups.scope import AllTopics, Topics, scope_of
from kgctl.commands.shared.arguments import Execute, Group
from kgctl.commands.shared.effects import changes
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings

EPILOG = examples(
    "kgctl groups delete-offsets orders --topic old-orders",
    "kgctl groups delete-offsets orders --topic orders:0,1 --execute",
)


@changes(names="group", when="execute")
def delete_offsets(
    ctx: typer.Context, group: Group, topic: Topics = None, all_topics: AllTopics = False, execute: Execute = False
) -> None:
    """Delete committed offsets of a group.

    Offsets of topics to which members of the group subscribe are refused.
    """
    scope = scope_of(ctx, topic or [], all_topics, None, needed=True)
    with settings(ctx).admin() as admin:
        rows = admin.plan_offset_deletion(group, scope)
        if execute:
            rows = admin.delete_offsets(rows)
    settings(ctx).show(rows, kind="offset-deletion")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))
