"""Checks of what applications pass to a consumer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kgctl.client.net.errors import BadValue
from kgctl.model.topic_partition import TopicPartition


def topic_names(topics: Iterable[str]) -> list[str]:
    """Check names of topics. Raises BadValue."""
    if isinstance(topics, str):
        raise BadValue(f"topics must be a list, not the text {topics!r}")
    names = list(topics)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise BadValue(f"{name!r} is not the name of a topic")
    return names


def check_timestamps(timestamps: Mapping[TopicPartition, int]) -> None:
    """Raises BadValue for a time before 1970, which ListOffsets would take for an end of the log."""
    for one, timestamp in timestamps.items():
        if timestamp < 0:
            raise BadValue(f"{one}: {timestamp} is not a time in milliseconds since 1970")


def partition_of(one: TopicPartition | tuple[str, int]) -> TopicPartition:
    """Raises BadValue if this is no partition."""
    topic, partition = one
    if not isinstance(topic, str) or not topic.strip() or not isinstance(partition, int) or partition < 0:
        raise BadValue(f"{one!r} is not a topic and the number of a partition")
    return TopicPartition(topic, partition)
