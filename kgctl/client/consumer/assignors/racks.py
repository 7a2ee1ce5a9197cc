"""Racks of members and of replicas: with KIP-881, members read from replicas in their own rack if balance allows it."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

from kgctl.client.consumer.assignors.assignor import ClusterView, Subscription
from kgctl.model.topic_partition import TopicPartition


def member_racks(members: Mapping[str, Subscription]) -> dict[str, str]:
    """The racks of the members that have one."""
    return {member_id: member.rack_id for member_id, member in members.items() if member.rack_id}


def racks_matter(racks_of_members: Collection[str], racks_of_partitions: Collection[Collection[str]]) -> bool:
    """Whether some member shares a rack with some replica, and not every rack has a replica of every partition."""
    every = {rack for racks in racks_of_partitions for rack in racks}
    return not every.isdisjoint(racks_of_members) and any(set(racks) != every for racks in racks_of_partitions)


class Racks:
    """Which member is in the rack of which partition. False if racks do not matter; then no member mismatches."""

    def __init__(
        self, cluster: ClusterView, members: Mapping[str, Subscription], partitions: Iterable[TopicPartition]
    ) -> None:
        self._members = member_racks(members)
        self._partitions: dict[TopicPartition, frozenset[str]] = {}
        if self._members:
            racks = cluster.replica_racks
            self._partitions = {partition: frozenset(racks.get(partition, ())) for partition in partitions}
        if not racks_matter(set(self._members.values()), self._partitions.values()):
            self._members, self._partitions = {}, {}

    def __bool__(self) -> bool:
        return bool(self._members)

    def mismatch(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether the member has a rack, and no replica of the partition is in it."""
        rack = self._members.get(member_id)
        return rack is not None and rack not in self._partitions.get(partition, ())

    def fewest_members_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """The partitions that the fewest members can read in their racks come first."""
        if not self:
            return partitions
        count: dict[str, int] = {}
        for rack in self._members.values():
            count[rack] = count.get(rack, 0) + 1
        return sorted(partitions, key=lambda one: sum(count.get(rack, 0) for rack in self._partitions.get(one, ())))

    def next_member(self, partition: TopicPartition, member_ids: Sequence[str], start: int) -> int | None:
        """The index of the next member in a rack of the partition, beginning at `start` and around the end."""
        racks = self._partitions.get(partition)
        if not racks:
            return None
        around = itertools.chain(range(start, len(member_ids)), range(start))
        return next((index for index in around if self._members.get(member_ids[index]) in racks), None)
