"""`kgctl topics`: list, describe, create and delete topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.classic import given_options, option
from kgctl.commands.shared.effects import changes, reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.model.changes import TopicChange
from kgctl.model.topics import TopicRow
from kgctl.render import note

topics_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, describe, create and delete topics.")

TOOL = "kafka-topics.sh"
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC...", show_default=False)]


@topics_app.command("list", epilog=examples("kgctl topics list", "kgctl topics list --exclude-internal -o json"))
@shows("topics")
@reads
def list_topics(
    ctx: typer.Context,
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Leave out internal topics such as __consumer_offsets.")
    ] = False,
) -> None:
    """List topics with their partition and replica counts.

    If the cluster has ACLs, these are the topics that you may describe.
    """
    settings(ctx).explain_as(TOOL, "--list", *option("--exclude-internal", exclude_internal))
    with settings(ctx).admin() as admin:
        rows = [row for row in admin.list_topics() if not (exclude_internal and row.internal)]
    settings(ctx).show(rows, kind="topics")


@topics_app.command(
    epilog=examples("kgctl topics describe", "kgctl topics describe orders", "kgctl topics describe orders --configs")
)
@shows("topic-partitions", "topic-configs")
@reads
def describe(
    ctx: typer.Context,
    topics: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC...]", show_default=False)] = None,
    configs: Annotated[
        bool, typer.Option("--configs", help="Show settings that differ from the broker's defaults.")
    ] = False,
    all_configs: Annotated[bool, typer.Option("--all-configs", help="Show all settings.")] = False,
) -> None:
    """Show partitions of topics: leader, replicas, offsets.

    Without TOPIC, all topics.
    """
    _explain_description(ctx, topics or (), configs=configs, all_configs=all_configs)
    with settings(ctx).admin() as admin:
        if configs or all_configs:
            names = topics or [row.topic for row in admin.list_topics()]
            settings_rows = admin.topic_configs(names, all_of_them=all_configs)
            settings(ctx).show(settings_rows, kind="topic-configs")
            conclude((row.error for row in settings_rows), len(names))
            return
        rows = admin.describe_topics(topics or None)
    settings(ctx).show(rows, kind="topic-partitions")
    conclude((row.error for row in rows), len(rows))


@topics_app.command(
    epilog=examples(
        "kgctl topics create orders --partitions 6",
        "kgctl topics create users --config cleanup.policy=compact --if-not-exists",
    )
)
@shows("topic-changes")
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
    with settings(ctx).admin() as admin:
        rows = admin.create_topics(
            topics, partitions=partitions, replicas=replicas, configs=_pairs(config or []), note=note
        )
        existing = [row.topic for row in rows if if_not_exists and _exists(row)]
        found = {row.topic: row for row in admin.list_topics(existing)} if existing else {}
    rows = [_existing(row, found[row.topic], partitions) if row.topic in found else row for row in rows]
    settings(ctx).show(rows, kind="topic-changes")
    conclude((row.error for row in rows), len(rows))


@topics_app.command(epilog=examples("kgctl topics delete orders", "kgctl topics delete orders --execute"))
@shows("topic-changes")
@changes(names="topics", when="execute")
def delete(ctx: typer.Context, topics: Topics, execute: Execute = False) -> None:
    """Delete topics with all their records."""
    for topic in topics:
        settings(ctx).explain_as(TOOL, "--delete", "--topic", topic)
    settings(ctx).explain("It deletes at once; `kgctl topics delete` shows a plan first.")
    with settings(ctx).admin() as admin:
        rows = admin.plan_topic_deletion(topics)
        if execute:
            rows = admin.delete_topics(rows)
    settings(ctx).show(rows, kind="topic-changes")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))


def _explain_description(ctx: typer.Context, topics: Sequence[str], *, configs: bool, all_configs: bool) -> None:
    if not (configs or all_configs):
        words = [option("--topic", topic) for topic in topics] or [[]]
        for named in words:
            settings(ctx).explain_as(TOOL, "--describe", *named)
        return
    for topic in topics:
        named = ["--entity-type", "topics", "--entity-name", topic, *option("--all", all_configs)]
        settings(ctx).explain_as("kafka-configs.sh", "--describe", *named)


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


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint="'--config'")
        pairs[name] = value
    return pairs
