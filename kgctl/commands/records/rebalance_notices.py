"""A line on stderr for each change of the partitions that a member of a group has."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kgctl.client.consumer.consumer import Consumer
from kgctl.model.topic_partition import TopicPartition, in_ranges


class RebalanceNotices:
    """Lines such as `group billing, generation 3: assigned orders:0-2 payments:1`. Partitions are written as arguments."""

    def __init__(self, consumer: Consumer, group: str, notice: Callable[[str], None]) -> None:
        self._consumer, self._group, self._notice = consumer, group, notice
        self._generation = -1

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._generation = self._consumer.group_metadata().generation_id
        has_others = len(self._consumer.assignment()) > len(partitions)
        self._say("assigned", in_ranges(partitions) or ("no other partitions" if has_others else "no partitions"))

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        # The epoch of a member of the consumer protocol grows also while its partitions stay the same.
        self._generation = max(self._generation, self._consumer.group_metadata().generation_id)
        self._say("revoked", in_ranges(partitions))

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self._say("lost", in_ranges(partitions))

    def _say(self, what: str, partitions: str) -> None:
        if partitions:
            self._notice(f"group {self._group}, generation {self._generation}: {what} {partitions}")
