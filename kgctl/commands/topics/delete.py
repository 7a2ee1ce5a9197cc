"""`kgctl topics delete`: delete topics."""

from __future__ import annotations

import typer

from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.commands.topics.arguments import TOOL, Topics
from kgctl.journal.items import topics_deleted

EPILOG = examples("kgctl topics delete orders", "kgctl topics delete orders --execute")


@shows("topic-changes")
@journaled
@changes(names="topics", when="execute")
def delete(ctx: typer.Context, topics: Topics, execute: Execute = False) -> None:
    """Delete topics with all their records."""
    for topic in topics:
        settings(ctx).explain_as(TOOL, "--delete", "--topic", topic)
    settings(ctx).explain("It deletes at once; `kgctl topics delete` shows a plan first.")
    with settings(ctx).admin() as admin:
        rows = admin.plan_topic_deletion(topics)
        if execute:
            plan = rows
            rows = keep(
                settings(ctx),
                admin,
                "topics delete",
                lambda: topics_deleted(admin, [row.topic for row in plan if not row.error]),
                lambda: admin.delete_topics(plan),
            )
    settings(ctx).show(rows, kind="topic-changes")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))
