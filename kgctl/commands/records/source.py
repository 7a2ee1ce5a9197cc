"""What `kgctl consume` is asked to read: topics, topics that match a pattern, or partitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import typer

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import BadValue
from kgctl.commands.shared.arguments import only_one
from kgctl.commands.shared.patterns import parse_pattern


@dataclass(frozen=True, slots=True)
class Source:
    """`partitions` are the numbers for each topic; None: all, also those that are added later. Either topics or a pattern."""

    topics: Sequence[str] = ()
    pattern: re.Pattern[str] | None = None
    partitions: Mapping[str, Sequence[int]] | None = None


def source_of(
    ctx: typer.Context,
    words: Sequence[str] | None,
    include: str | None,
    decode: str | None,
    numbers: Sequence[int] | None,
) -> Source:
    """Read the arguments. `decode` is a kind of internal records. Raises BadParameter."""
    only_one({"TOPIC": words, "--include": include, "--decode": decode})
    if include is not None:
        only_one({"--include": include, "--partition": numbers})
        return Source(pattern=parse_pattern(include, "--include"))
    if decode is not None:
        from kgctl.render.internal_records import TOPICS

        words = [TOPICS[decode]]
    if not words:
        ctx.fail("Name topics, or give --include REGEX or --decode KIND.")
    named = [_parsed(word) for word in words]
    whole = [topic for topic, of_topic in named if of_topic is None]
    if len(whole) == len(named):
        topics = list(dict.fromkeys(whole))
        chosen = sorted(set(numbers or ()))
        return Source(topics, partitions=dict.fromkeys(topics, chosen) if chosen else None)
    if whole:
        raise typer.BadParameter(
            f"name topics or partitions of topics, not both: {whole[0]!r} has no :PARTITION.", param_hint="'TOPIC'"
        )
    only_one({"TOPIC:PARTITION": words, "--partition": numbers})
    partitions: dict[str, set[int]] = {}
    for topic, of_topic in named:
        partitions.setdefault(topic, set()).update(of_topic or ())
    return Source(list(partitions), partitions={topic: sorted(found) for topic, found in partitions.items()})


def _parsed(word: str) -> tuple[str, tuple[int, ...] | None]:
    from kgctl.client.admin.reset_input import topic_partitions

    try:
        return topic_partitions(word)
    except BadValue as error:
        raise typer.BadParameter(f"{error}.", param_hint="'TOPIC'") from None
