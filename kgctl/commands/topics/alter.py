"""`kgctl topics alter`: more partitions, other configs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from kgctl.client.admin.topic_alterations import PARTITIONS
from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.commands.topics.arguments import TOOL, Topics, pairs
from kgctl.journal.items import topics_altered
from kgctl.model.changes import FAILED
from kgctl.model.configs import TopicAlteration
from kgctl.render import note

EPILOG = examples(
    "kgctl topics alter orders --partitions 12",
    "kgctl topics alter orders --config retention.ms=86400000 --execute",
    "kgctl topics alter orders payments --delete-config retention.ms --execute",
)


@shows("topic-alterations")
@journaled
@changes(names="topics", when="execute")
def alter(
    ctx: typer.Context,
    topics: Topics,
    partitions: Annotated[
        int | None, typer.Option("--partitions", min=1, metavar="N", help="The new number of partitions.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", metavar="NAME=VALUE", help="Set this config; repeatable.")
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(
            "--delete-config",
            metavar="NAME",
            callback=not_empty,
            help="Unset this config: use its default; repeatable.",
        ),
    ] = None,
    execute: Execute = False,
) -> None:
    """Add partitions to topics, set and unset their configs.

    The cluster checks the plan. A topic keeps the partitions that it has: Kafka cannot remove any. With more partitions,
    a key goes to another partition than its older records.
    """
    wanted: dict[str, str | None] = {**pairs(config or [], "--config")}
    twice = sorted(wanted.keys() & set(delete_config or ()))
    if twice:
        raise typer.BadParameter(f"{twice[0]} is to be set, too.", param_hint="'--delete-config'")
    wanted |= dict.fromkeys(delete_config or ())
    if partitions is None and not wanted:
        ctx.fail("Say what to alter: --partitions N, --config NAME=VALUE, --delete-config NAME.")
    _explain(ctx, topics, partitions, wanted)
    with settings(ctx).admin() as admin:
        rows = admin.plan_topic_alterations(topics, partitions, wanted)
        if execute:
            plan = rows
            rows = keep(
                settings(ctx),
                admin,
                "topics alter",
                lambda: topics_altered(admin, plan),
                lambda: admin.alter_topics(plan),
            )
    settings(ctx).show(rows, kind="topic-alterations")
    _warn_of_keys(rows)
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))


def _warn_of_keys(rows: Iterable[TopicAlteration]) -> None:
    grown = [row.topic for row in rows if row.setting == PARTITIONS and row.status not in (FAILED, "same", "skipped")]
    if grown:
        note(
            f"Warning: records with the same key go to other partitions of {', '.join(grown)} than before, "
            "so their order across the change is lost."
        )


def _explain(ctx: typer.Context, topics: list[str], partitions: int | None, configs: dict[str, str | None]) -> None:
    chosen = settings(ctx)
    added = ",".join(
        f"{name}=[{value}]" if "," in value else f"{name}={value}"
        for name, value in configs.items()
        if value is not None
    )
    deleted = ",".join(name for name, value in configs.items() if value is None)
    for topic in topics:
        if partitions is not None:
            chosen.explain_as(TOOL, "--alter", "--topic", topic, "--partitions", str(partitions))
        words = [*(["--add-config", added] if added else []), *(["--delete-config", deleted] if deleted else [])]
        if words:
            chosen.explain_as("kafka-configs.sh", "--alter", "--entity-type", "topics", "--entity-name", topic, *words)
