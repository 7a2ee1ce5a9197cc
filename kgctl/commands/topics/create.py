"""`kgctl topics create`: create topics."""

from __future__ import annotations

from typing import Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.commands.shared.classic import given_options
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.commands.topics.arguments import TOOL, Topics, pairs
from kgctl.journal.items import topics_created
from kgctl.model.changes import TopicChange
from kgctl.model.topics import TopicRow
from kgctl.render import note

EPILOG = examples(
    "kgctl topics create orders --partitions 6",
    "kgctl topics create users --config cleanup.policy=compact --if-not-exists",
)


@shows("topic-changes")
@journaled
@changes(names="topics")
def create(
    ctx: typer.Context,
    topics: Topics,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, metavar="N", help="Partitions. [default: num.partitions of the broker]"),
    ] = None,
    replicas: Annotated[
        int | None,
        typer.Option(
            "--replication-factor",
            min=1,
            metavar="N",
            help="Replicas. [default: default.replication.factor of the broker]",
        ),
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", metavar="NAME=VALUE", help="Topic setting; repeatable.")
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Succeed if the topic exists already.")
    ] = False,
) -> None:
    """Create topics."""
    for topic in topics:
        given = given_options(ctx, "partitions", "replicas", "config", "if_not_exists")
        settings(ctx).explain_as(TOOL, "--create", "--topic", topic, *given)
    configs = pairs(config or [], "--config")
    with settings(ctx).admin() as admin:
        rows = keep(
            settings(ctx),
            admin,
            "topics create",
            lambda: topics_created(admin, topics),
            lambda: admin.create_topics(topics, partitions=partitions, replicas=replicas, configs=configs, note=note),
        )
        existing = [row.topic for row in rows if if_not_exists and _exists(row)]
        found = {row.topic: row for row in admin.list_topics(existing)} if existing else {}
    rows = [_existing(row, found[row.topic], partitions) if row.topic in found else row for row in rows]
    settings(ctx).show(rows, kind="topic-changes")
    conclude((row.error for row in rows), len(rows))


def _exists(row: TopicChange) -> bool:
    return row.error is not None and row.error.name == "TOPIC_ALREADY_EXISTS"


def _existing(row: TopicChange, found: TopicRow, wanted: int | None) -> TopicChange:
    """The row of a topic that exists already, with a warning if its partition count is not the wanted one."""
    if found.error:
        return replace(row, error=found.error)
    if wanted is not None and wanted != found.partitions:
        partitions = "1 partition" if found.partitions == 1 else f"{found.partitions} partitions"
        note(f"Warning: topic '{row.topic}' exists already with {partitions}, not with {wanted}.")
    return replace(row, partitions=found.partitions, replicas=found.replicas, status="exists", error=None)
