"""The options that choose topics and partitions of a group, and what they mean."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.client.admin.reset import Scope
from kgctl.client.admin.reset_input import topic_partitions
from kgctl.client.net.errors import BadValue
from kgctl.commands.shared.arguments import not_empty, only_one

Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="TOPIC[:P,...]", callback=not_empty, help="Topic, or some of its partitions; repeatable."
    ),
]
AllTopics = Annotated[bool, typer.Option("--all-topics", help="All topics for which the group has committed offsets.")]


def scope_of(ctx: typer.Context, topics: list[str], all_topics: bool, needed: bool) -> Scope:
    only_one({"--topic": topics, "--all-topics": all_topics})
    if needed and not topics and not all_topics:
        ctx.fail("Name topics with --topic TOPIC[:P,...], or give --all-topics.")
    if not needed and (topics or all_topics):
        raise typer.BadParameter("The file names the topics.", param_hint="'--from-file'")
    return Scope(tuple(_topic(text) for text in topics), all_topics)


def _topic(text: str) -> tuple[str, tuple[int, ...] | None]:
    try:
        return topic_partitions(text)
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint="'--topic'") from None
