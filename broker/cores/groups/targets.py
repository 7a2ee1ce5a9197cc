"""What the target assignments of all types share whose assignors run on the broker."""

from __future__ import annotations

from broker.cores.groups.records.consumer import Target
from broker.cores.groups.topics import TopicCatalog


class TopicsOfAssignors:
    """The topics as assignors ask for them."""

    def __init__(self, catalog: TopicCatalog) -> None:
        self._catalog = catalog
        self.racks = catalog.racks
        self._counts: dict[bytes, int] = {}

    def partition_count(self, topic_id: bytes) -> int:
        found = self._counts.get(topic_id)
        if found is None:
            name = self._catalog.topic_name(topic_id)
            count = None if name is None else self._catalog.partition_count(name)
            found = self._counts[topic_id] = -1 if count is None else count
        return found


def is_same(target: Target, stored: Target) -> bool:
    """Whether both have the same partitions, in whatever order."""
    if target == stored:
        return True
    return target.keys() == stored.keys() and all(
        frozenset(partitions) == frozenset(stored[topic_id]) for topic_id, partitions in target.items()
    )
