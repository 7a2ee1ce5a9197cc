"""Sticky assignment if members subscribe to different topics: keep what is owned, then move partitions until balanced."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kgctl.client.consumer.assignors.movements import Movements
from kgctl.client.consumer.assignors.racks import Racks
from kgctl.client.consumer.assignors.sizes import Sizes
from kgctl.model.topic_partition import TopicPartition


class GeneralAssignment:
    """As Kafka's GeneralAssignmentBuilder. `topics` has the existing topics of each member."""

    def __init__(
        self,
        partition_counts: Mapping[str, int],
        topics: Mapping[str, Collection[str]],
        owned: Mapping[str, Iterable[TopicPartition]],
        racks: Racks,
    ) -> None:
        self.shares: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in topics}
        self._counts, self._topics, self._racks = partition_counts, topics, racks
        self._takers: dict[str, list[str]] = {topic: [] for topic in partition_counts}
        for member_id, theirs in topics.items():
            for topic in theirs:
                self._takers[topic].append(member_id)
        self._partitions = [
            TopicPartition(topic, number)
            for topic in sorted(partition_counts, key=lambda topic: (len(self._takers[topic]), topic))
            for number in range(partition_counts[topic])
        ]
        self._owner: dict[TopicPartition, str] = {}
        # How many partitions of a topic a member has: {topic: {member: number}}.
        self._held: dict[str, dict[str, int]] = {topic: {} for topic in partition_counts}
        self._something_revoked = False
        for member_id, partitions in owned.items():
            self._keep(member_id, partitions)
        self._sizes = Sizes((member_id, len(share)) for member_id, share in self.shares.items())
        self._movements = Movements()
        self._witness: tuple[str, str, str] | None = None

    def build(self, older: Mapping[TopicPartition, str]) -> dict[str, list[TopicPartition]]:
        """The assignment. `older` has last owners that have missed a generation."""
        unassigned = [partition for partition in self._partitions if partition not in self._owner]
        left = self._assign(unassigned, in_racks=True) if self._racks else unassigned
        self._assign(left, in_racks=False)
        for member_id in self._topics:
            if not self._takes_part(member_id):
                self._sizes.remove(member_id)
        if not self._something_revoked:
            self._balance([partition for partition in unassigned if self._is_movable(partition)], older)
        self._balance([partition for partition in self._partitions if self._is_movable(partition)], older)
        return {member_id: list(share) for member_id, share in self.shares.items()}

    def _keep(self, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if partition.topic in self._topics[member_id] and not self._racks.mismatch(member_id, partition):
                self._give(partition, member_id)
            else:
                self._something_revoked = True

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        self.shares[member_id][partition] = None
        self._owner[partition] = member_id
        held = self._held[partition.topic]
        held[member_id] = held.get(member_id, 0) + 1

    def _assign(self, partitions: Sequence[TopicPartition], *, in_racks: bool) -> list[TopicPartition]:
        """Assign each to the member with the fewest partitions that may have it; those that none may have."""
        left = []
        for partition in partitions:
            for member_id in self._sizes:
                if partition.topic in self._topics[member_id] and not (
                    in_racks and self._racks.mismatch(member_id, partition)
                ):
                    self._give(partition, member_id)
                    self._sizes.change(member_id, +1)
                    break
            else:
                left.append(partition)
        return left

    # --- balancing ---

    def _is_movable(self, partition: TopicPartition) -> bool:
        return len(self._takers[partition.topic]) >= 2

    def _takes_part(self, member_id: str) -> bool:
        """Whether a member may get or lose partitions."""
        possible = sum(self._counts[topic] for topic in self._topics[member_id])
        return len(self.shares[member_id]) < possible or any(map(self._is_movable, self.shares[member_id]))

    def _balance(self, partitions: Sequence[TopicPartition], older: Mapping[TopicPartition, str]) -> None:
        """Move partitions to members with at least two fewer until there are none. Each move improves the balance."""
        moved = True
        while moved:
            moved = False
            for partition in partitions:
                if self._is_balanced():
                    break
                target = self._better_owner(partition, older)
                if target is not None:
                    self._move(partition, target)
                    moved = True

    def _better_owner(self, partition: TopicPartition, older: Mapping[TopicPartition, str]) -> str | None:
        size = self._sizes[self._owner[partition]]
        former = older.get(partition)
        if (
            former is not None
            and former in self._sizes
            and partition.topic in self._topics[former]
            and size > self._sizes[former] + 1
        ):
            return former
        smallest = next(member_id for member_id in self._sizes if partition.topic in self._topics[member_id])
        return smallest if size > self._sizes[smallest] + 1 else None

    def _move(self, partition: TopicPartition, target: str) -> None:
        instead = self._movements.instead_of(partition, self._owner[partition], target)
        if self._sizes[self._owner[instead]] > self._sizes[target] + 1:
            partition = instead
        source = self._owner[partition]
        self._movements.record(partition, source, target)
        del self.shares[source][partition]
        held = self._held[partition.topic]
        held[source] -= 1
        if not held[source]:
            del held[source]
        self._give(partition, target)
        self._sizes.change(source, -1)
        self._sizes.change(target, +1)

    def _is_balanced(self) -> bool:
        """Whether no partition can move to a member with at least two partitions fewer than its owner."""
        sizes = self._sizes
        if sizes.smallest() >= sizes.largest() - 1:
            return True
        if self._witness is not None:
            topic, small, large = self._witness
            if sizes[small] + 1 < sizes[large] and large in self._held[topic]:
                return False
        for topic, holders in self._held.items():
            takers = self._takers[topic]
            if len(takers) < 2 or not holders:
                continue
            small, large = min(takers, key=sizes.__getitem__), max(holders, key=sizes.__getitem__)
            if sizes[small] + 1 < sizes[large]:
                self._witness = (topic, small, large)
                return False
        return True
