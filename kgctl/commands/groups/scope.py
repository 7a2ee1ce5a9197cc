"""The options that choose topics and partitions of groups, and what they mean."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.client.admin.reset_input import topic_partitions
from kgctl.client.admin.reset_targets import Scope
from kgctl.client.net.errors import BadValue
from kgctl.commands.shared.arguments import not_empty, only_one
from kgctl.commands.shared.patterns import parse_pattern

Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC[:P,...]",
        callback=not_empty,
        help="Topic, or some of its partitions, such as orders:0,2 or orders:0-5; repeatable.",
    ),
]
AllTopics = Annotated[bool, typer.Option("--all-topics", help="All topics for which the group has committed offsets.")]
TopicMatch = Annotated[
    str | None,
    typer.Option("--topic-match", metavar="REGEX", help="Those of them whose whole name matches REGEX."),
]


def scope_of(
    ctx: typer.Context, topics: list[str], all_topics: bool, topic_match: str | None, *, needed: bool
) -> Scope:
    only_one({"--topic": topics, "--all-topics": all_topics, "--topic-match": topic_match})
    is_given = bool(topics) or all_topics or topic_match is not None
    if needed and not is_given:
        ctx.fail("Name topics with --topic TOPIC[:P,...], or give --all-topics or --topic-match REGEX.")
    if not needed and is_given:
        raise typer.BadParameter("The file names the topics.", param_hint="'--from-file'")
    pattern = None if topic_match is None else parse_pattern(topic_match, "--topic-match")
    return Scope(tuple(_topic(text) for text in topics), all_topics, pattern)


def _topic(text: str) -> tuple[str, tuple[int, ...] | None]:
    try:
        return topic_partitions(text)
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint="'--topic'") from None
