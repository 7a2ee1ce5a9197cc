"""`kgctl groups delete-offsets`: delete committed offsets of groups."""

from __future__ import annotations

import typer

from kgctl.client.net.errors import NotFound, from_row
from kgctl.commands.groups.scope import AllTopics, TopicMatch, Topics, scope_of
from kgctl.commands.groups.selection import AllGroups, Groups, Match, selected, tool_of
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import carry_out, planned
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.journal.making import of_offset_deletions
from kgctl.model.groups import CLASSIC, CONSUMER, SHARE

EPILOG = examples(
    "kgctl groups delete-offsets orders --topic old-orders",
    "kgctl groups delete-offsets orders --topic orders:0,1 --execute",
    "kgctl groups delete-offsets --all-groups --topic old-orders --execute",
    "kgctl groups delete-offsets orders --topic old-orders --plan orders.json",
)


@shows("offset-deletion")
@changes(names="groups", when="execute")
@planned
def delete_offsets(
    ctx: typer.Context,
    groups: Groups = None,
    match: Match = None,
    all_groups: AllGroups = False,
    topic: Topics = None,
    all_topics: AllTopics = False,
    topic_match: TopicMatch = None,
    execute: Execute = False,
) -> None:
    """Delete committed offsets of groups.

    Offsets of topics to which members of a group subscribe are refused. Start offsets of share groups are deleted for whole
    topics, while the group has no members.
    """
    scope = scope_of(ctx, topic or [], all_topics, topic_match, needed=True)
    selection = selected(ctx, groups, match, all_groups, types=(CLASSIC, CONSUMER, SHARE))
    with settings(ctx).admin() as admin:
        names = selection.groups(admin)
        plan = admin.plan_offset_deletions(names, scope, known_only=selection.is_listed)
        if selection.is_one and topic:
            named = ["--group", *selection.names, *(word for name in topic for word in ("--topic", name))]
            settings(ctx).explain_as(tool_of(admin, selection.names), "--delete-offsets", *named)
        if selection.is_one and plan and plan[0].error and plan[0].topic is None:
            raise from_row(plan[0].error)
        if selection.is_listed and not plan:
            raise NotFound("None of these groups has committed offsets in this scope.")
        rows = carry_out(
            settings(ctx),
            admin,
            "delete-offsets",
            plan,
            [row.group for row in plan if not row.error],
            lambda states: of_offset_deletions(plan, states),
            lambda: admin.delete_offsets(plan),
            execute=execute,
        )
    settings(ctx).show(rows, kind="offset-deletion", errors=selection.errors)
    note_dry_run(execute, [row.error for row in rows])
    conclude([*selection.errors, *(row.error for row in rows)], len(rows) + len(selection.errors))
