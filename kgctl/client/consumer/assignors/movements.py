"""Partitions that moved between members while a group is balanced, so that no two members swap partitions of a topic."""

from __future__ import annotations

from kgctl.model.topic_partition import TopicPartition

Pair = tuple[str, str]


class Movements:
    """For each moved partition the member that it left first and the member that it went to last."""

    def __init__(self) -> None:
        self._moved: dict[TopicPartition, Pair] = {}
        self._by_pair: dict[tuple[str, Pair], dict[TopicPartition, None]] = {}

    def instead_of(self, partition: TopicPartition, source: str, target: str) -> TopicPartition:
        """The partition to move: one of the same topic that went from `target` to `source` goes back instead."""
        if partition in self._moved:
            source = self._moved[partition][0]
        back = self._by_pair.get((partition.topic, (target, source)))
        return max(back) if back else partition

    def record(self, partition: TopicPartition, source: str, target: str) -> None:
        known = self._moved.pop(partition, None)
        if known is not None:
            source = known[0]
            key = (partition.topic, known)
            del self._by_pair[key][partition]
            if not self._by_pair[key]:
                del self._by_pair[key]
        if source != target:
            self._moved[partition] = (source, target)
            self._by_pair.setdefault((partition.topic, (source, target)), {})[partition] = None
