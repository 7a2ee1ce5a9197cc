"""An assignment while an assignor changes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from broker.cores.groups.assignors.interface import Assignment, TopicId
from broker.cores.groups.assignors.java_order import (
    copied_capacity,
    grown,
    ids_order,
    numbers_order,
    table_size,
)

_LOADED_MAP = 16  # buckets of a map of topics that grew from nothing
NEW_SET = 16


class Draft:
    """A copy of a member's assignment that knows in which order Java's maps would iterate over it."""

    __slots__ = ("_capacities", "_capacity", "_partitions", "before")

    def __init__(self, before: Assignment) -> None:
        self.before = before
        self._capacity = grown(table_size(len(before)), len(before))
        # The order in which keys were put into their maps.
        self._partitions = {topic: dict.fromkeys(set_of(before[topic])) for topic in topics_of(before)}
        self._capacities = {topic: copied_capacity(len(owned)) for topic, owned in self._partitions.items()}

    def add(self, topic: TopicId, partitions: Collection[int], new_set: int = NEW_SET) -> None:
        """Add partitions; a topic that is new gets a set with this number of buckets."""
        self._grow()
        owned = self._partitions.get(topic)
        if owned is None:
            # computeIfAbsent() puts a key before the others of its bucket.
            owned = {}
            self._partitions = {topic: owned, **self._partitions}
            self._capacities[topic] = new_set
            if len(partitions) > 1:
                self._grow()
        owned.update(dict.fromkeys(partitions))
        self._capacities[topic] = grown(self._capacities[topic], len(owned))

    def _grow(self) -> None:
        """What computeIfAbsent() does first, in each of its calls."""
        if len(self._partitions) > self._capacity * 3 // 4:
            self._capacity *= 2

    def remove(self, topic: TopicId, partitions: Iterable[int]) -> None:
        owned = self._partitions[topic]
        for partition in partitions:
            del owned[partition]
        if not owned:
            del self._partitions[topic]

    def finish(self) -> Assignment:
        """The assignment; the one before if nothing has changed in the end."""
        before = self.before
        if len(before) == len(self._partitions) and all(
            len(owned) == len(before.get(topic, ())) and all(map(owned.__contains__, before[topic]))
            for topic, owned in self._partitions.items()
        ):
            return before
        return {
            topic: tuple(numbers_order(self._partitions[topic], self._capacities[topic]))
            for topic in ids_order(list(self._partitions), self._capacity)
        }


def topics_of(assignment: Assignment) -> list[TopicId]:
    """The topics in the order of a map that was read from the record of the assignment."""
    return ids_order(list(assignment), grown(_LOADED_MAP, len(assignment)))


def set_of(partitions: tuple[int, ...]) -> list[int]:
    """Partitions in the order of a set that was read from the record of the assignment."""
    return numbers_order(partitions, copied_capacity(len(partitions)))
