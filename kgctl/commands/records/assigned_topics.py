"""What a reader that no group assigns partitions to reads: given partitions, or topics with all that is added to them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from kgctl.client.admin.log_ends import partition_counts
from kgctl.client.admin.topics import list_topics
from kgctl.client.net.connector import Connector
from kgctl.client.net.errors import KgctlError, missing_partition
from kgctl.commands.records.source import Source
from kgctl.commands.shared.patterns import matching
from kgctl.model.topic_partition import TopicPartition

_LOOKUP_SECONDS = 5.0


def matching_topics(connector: Connector, source: Source, timeout: float) -> dict[str, int]:
    """The topics that match the pattern now, with their partition counts; no internal ones."""
    rows = connector.run(list_topics(connector.cluster), timeout)
    counts = {row.topic: row.partitions for row in rows if not row.internal and row.error is None}
    return {topic: counts[topic] for topic in matching(counts, source.pattern)}


class AssignedTopics:
    """Call `find` once, then `added` regularly. `refresh_seconds`: how often to look for topics that match the pattern."""

    def __init__(self, connector: Connector, source: Source, refresh_seconds: float) -> None:
        self._connector, self._source, self._refresh_seconds = connector, source, refresh_seconds
        self._counts: dict[str, int] = {}
        self._refresh_at = 0.0

    def find(self, timeout: float) -> list[TopicPartition]:
        """The partitions to begin with; none if no topic matches the pattern. Raises NotFound for others."""
        source = self._source
        self._refresh_at = time.monotonic() + self._refresh_seconds
        if source.pattern is not None:
            self._counts = matching_topics(self._connector, source, timeout)
            return _partitions(self._counts)
        self._counts = self._connector.run(partition_counts(self._connector.cluster, list(source.topics)), timeout)
        if source.partitions is None:
            return _partitions(self._counts)
        for topic, numbers in source.partitions.items():
            for number in numbers:
                if number >= self._counts[topic]:
                    raise missing_partition(topic, number, self._counts[topic])
        return [TopicPartition(topic, number) for topic, numbers in source.partitions.items() for number in numbers]

    def added(self, known_count: Callable[[str], int | None]) -> list[TopicPartition]:
        """Partitions that did not exist before. `known_count`: how many a topic has as far as the consumer knows."""
        if self._source.partitions is not None:
            return []
        counts = {topic: known_count(topic) or 0 for topic in self._counts}
        if self._source.pattern is not None and time.monotonic() >= self._refresh_at:
            self._refresh_at = time.monotonic() + self._refresh_seconds
            with contextlib.suppress(KgctlError):  # the consumer reports an outage
                found = matching_topics(self._connector, self._source, _LOOKUP_SECONDS)
                counts |= {topic: count for topic, count in found.items() if topic not in counts}
        new = []
        for topic, count in counts.items():
            known = self._counts.get(topic, 0)
            if count > known:
                self._counts[topic] = count
                new += [TopicPartition(topic, number) for number in range(known, count)]
        return new


def _partitions(counts: dict[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
