"""`kgctl topics describe`: partitions or settings of topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from kgctl.commands.shared.classic import option
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.commands.topics.arguments import TOOL

EPILOG = examples("kgctl topics describe", "kgctl topics describe orders", "kgctl topics describe orders --configs")


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


def _explain_description(ctx: typer.Context, topics: Sequence[str], *, configs: bool, all_configs: bool) -> None:
    if not (configs or all_configs):
        words = [option("--topic", topic) for topic in topics] or [[]]
        for named in words:
            settings(ctx).explain_as(TOOL, "--describe", *named)
        return
    for topic in topics:
        named = ["--entity-type", "topics", "--entity-name", topic, *option("--all", all_configs)]
        settings(ctx).explain_as("kafka-configs.sh", "--describe", *named)
