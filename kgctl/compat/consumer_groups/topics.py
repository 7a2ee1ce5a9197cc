"""`--topic` arguments: a topic, or a topic with partitions as in `orders:0,1`."""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.compat.options import UsageError
from kgctl.model.topic_partition import TopicPartition


def by_form(topics: Iterable[str]) -> tuple[list[str], list[str]]:
    """The arguments with partitions, and those without."""
    given = list(topics)
    return [topic for topic in given if ":" in topic], [topic for topic in given if ":" not in topic]


def named_partitions(argument: str) -> list[TopicPartition]:
    """Raises UsageError."""
    parts = argument.split(":")
    while parts and not parts[-1]:
        parts.pop()
    if len(parts) != 2:
        raise UsageError(f"Invalid topic arg '{argument}', expected topic name and partitions")
    topic, numbers = parts
    found = []
    for number in numbers.rstrip(",").split(","):
        try:
            found.append(TopicPartition(topic, int(number)))
        except ValueError:
            about = f"Invalid partition '{number}' specified in topic arg '{argument}''"
            raise UsageError(about) from None
    return found
