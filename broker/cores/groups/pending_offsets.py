"""Pending offsets: what open transactions will have committed when they end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from broker.cores.core import BrokenInvariant
from broker.cores.groups.records import PendingOffset, PendingOffsetsRemoval, PendingOffsetSuperseded

# By topic, partition and producer id. The producers of a partition are in the order of their latest commits.
GroupPending: TypeAlias = "dict[str, dict[int, dict[int, PendingOffset]]]"
NOTHING: Mapping[int, PendingOffset] = {}


class PendingOffsets:
    """All pending offsets; hard state, which only state records change."""

    __slots__ = ("_groups", "_producers")

    def __init__(self) -> None:
        self._groups: dict[str, GroupPending] = {}
        self._producers: dict[int, dict[str, dict[tuple[str, int], None]]] = {}  # the places, by producer and group id

    def __bool__(self) -> bool:
        return bool(self._groups)

    # ---- changes -------------------------------------------------------------------------------------------------

    def put(self, record: PendingOffset) -> None:
        producer_id, group_id, topic, partition = record.producer_id, record.group_id, record.topic, record.partition
        try:
            self._producers[producer_id][group_id][topic, partition] = None
            producers = self._groups[group_id][topic]
        except KeyError:
            self._producers.setdefault(producer_id, {}).setdefault(group_id, {})[topic, partition] = None
            producers = self._groups.setdefault(group_id, {}).setdefault(topic, {})
        pending = producers.get(partition)
        if pending is None:
            producers[partition] = {producer_id: record}
            return
        pending.pop(producer_id, None)
        pending[producer_id] = record

    def supersede(self, record: PendingOffsetSuperseded) -> None:
        pending = self._groups[record.group_id][record.topic][record.partition]
        pending[record.producer_id] = pending[record.producer_id]._replace(superseded=True)

    def remove(self, removal: PendingOffsetsRemoval) -> None:
        groups = self._producers.get(removal.producer_id, {})
        places = groups.get(removal.group_id)
        if places is None:
            raise BrokenInvariant(f"producer {removal.producer_id} has no pending offsets of group {removal.group_id}")
        for topic, partition in list(places) if removal.places is None else removal.places:
            del places[topic, partition]
            self._forget(removal.producer_id, removal.group_id, topic, partition)
        if not places:
            del groups[removal.group_id]
        if not groups:
            del self._producers[removal.producer_id]

    def _forget(self, producer_id: int, group_id: str, topic: str, partition: int) -> None:
        topics = self._groups[group_id]
        partitions = topics[topic]
        producers = partitions[partition]
        del producers[producer_id]
        if not producers:
            del partitions[partition]
        if not partitions:
            del topics[topic]
        if not topics:
            del self._groups[group_id]

    # ---- look-ups ------------------------------------------------------------------------------------------------

    def of_group(self, group_id: str) -> GroupPending | None:
        """The pending offsets of a group; None if it has none."""
        return self._groups.get(group_id)

    def of_partition(self, group_id: str, topic: str, partition: int) -> Mapping[int, PendingOffset]:
        """The pending offsets of a partition by producer, in the order of their latest commits."""
        topics = self._groups.get(group_id)
        return NOTHING if topics is None else topics.get(topic, {}).get(partition, NOTHING)

    def losers(
        self, group_id: str, topic: str, partition: int, before: int | None = None
    ) -> list[PendingOffsetSuperseded]:
        """The pending offsets that lose against a commit: all of the partition, or those before that of a producer.

        Kafka compares where the commits are in the log.
        """
        out = []
        for producer_id, pending in self.of_partition(group_id, topic, partition).items():
            if producer_id == before:
                break
            if not pending.superseded:
                out.append(PendingOffsetSuperseded(producer_id, group_id, topic, partition))
        return out

    def groups_of(self, producer_id: int) -> list[str]:
        return list(self._producers.get(producer_id, ()))

    def places_of(self, producer_id: int, group_id: str) -> Mapping[tuple[str, int], None]:
        """The (topic, partition) pairs for which a producer has pending offsets of a group."""
        return self._producers.get(producer_id, {}).get(group_id, {})

    def epoch_of(self, producer_id: int, group_id: str) -> int:
        """The epoch of the producer that has pending offsets of the group."""
        where = next(iter(self.places_of(producer_id, group_id)))
        return self.of_partition(group_id, *where)[producer_id].producer_epoch

    def removals_of_group(self, group_id: str) -> list[PendingOffsetsRemoval]:
        """What to persist when the group is deleted."""
        if group_id not in self._groups:
            return []
        return [
            PendingOffsetsRemoval(producer, group_id)
            for producer, groups in self._producers.items()
            if group_id in groups
        ]

    def removals_of_topic(self, topic: str) -> list[PendingOffsetsRemoval]:
        """What to persist when the topic is deleted."""
        return [
            PendingOffsetsRemoval(producer_id, group_id, tuple(place for place in places if place[0] == topic))
            for producer_id, groups in self._producers.items()
            for group_id, places in groups.items()
            if any(place[0] == topic for place in places)
        ]
