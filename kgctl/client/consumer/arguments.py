"""Checks of what applications pass to a consumer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kgctl.client.consumer.subscription_pattern import SubscriptionPattern
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


def subscribed(topics: Iterable[str], pattern: object) -> list[str]:
    """The names of topics to subscribe to; none if a pattern is given instead. Raises BadValue."""
    names = topic_names(topics)
    if names and pattern is not None:
        raise BadValue("subscribe takes topics or a pattern, not both: a pattern can name topics with |")
    return names


def compiled(pattern: str | re.Pattern[str] | SubscriptionPattern) -> re.Pattern[str] | SubscriptionPattern:
    """Raises BadValue if it is empty or no regular expression."""
    try:
        found = re.compile(pattern) if isinstance(pattern, str) else pattern
    except re.error as error:
        raise BadValue(f"the pattern {pattern!r} is no regular expression: {error}") from error
    if not found.pattern:
        raise BadValue("the pattern is empty")
    return found


def check_listener(listener: object) -> None:
    """Raises BadValue if it cannot be called about partitions."""
    if not all(callable(getattr(listener, f"on_partitions_{kind}", None)) for kind in ("assigned", "revoked", "lost")):
        raise BadValue(f"{listener!r} is no RebalanceListener: derive a class from it and pass an object")


def timestamps_of(timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Raises BadValue for a time before 1970, which ListOffsets would take for an end of the log."""
    found = {partition_of(one): timestamp for one, timestamp in timestamps.items()}
    for one, timestamp in found.items():
        if timestamp < 0:
            raise BadValue(f"{one}: {timestamp} is not a time in milliseconds since 1970")
    return found


def partition_of(one: TopicPartition | tuple[str, int]) -> TopicPartition:
    """Raises BadValue if this is no partition."""
    topic, partition = one if isinstance(one, tuple) and len(one) == 2 else (None, None)
    if not isinstance(topic, str) or not topic.strip() or not isinstance(partition, int) or partition < 0:
        raise BadValue(f"{one!r} is not a topic and the number of a partition")
    return TopicPartition(topic, partition)
