"""Sticky assignment if all members subscribe to the same topics: quotas decide who keeps how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgctl.client.consumer.assignors.assignor import java_order
from kgctl.client.consumer.assignors.racks import Racks
from kgctl.model.topic_partition import TopicPartition


class ConstrainedAssignment:
    """As Kafka's ConstrainedAssignmentBuilder: members keep what they own up to their quota, then fill up in turn.

    Each member gets `_low` partitions, `_extra` members get one more. `transferring` has the partitions that another member
    has to revoke first.
    """

    def __init__(
        self,
        partitions: Sequence[TopicPartition],
        owned: Mapping[str, Mapping[TopicPartition, None]],
        contested: set[TopicPartition],
        racks: Racks,
    ) -> None:
        self.shares: dict[str, list[TopicPartition]] = {member_id: [] for member_id in owned}
        self.transferring: dict[TopicPartition, str] = {}
        self._racks = racks
        self._contested = contested
        self._low, self._extra = divmod(len(partitions), len(owned))
        self._high = self._low + (self._extra > 0)
        self._over = 0  # members with more than `_low`
        self._below: list[str] = []  # members with less than `_low`
        self._at_low: list[str] = []  # members with `_low` that may get one more
        self._revoked: dict[TopicPartition, str] = {}
        for member_id, theirs in owned.items():
            self._keep(member_id, theirs)
        kept = {partition for share in self.shares.values() for partition in share}
        self._below.sort(key=java_order)
        self._at_low.sort(key=java_order)
        left = racks.fewest_members_first([partition for partition in partitions if partition not in kept])
        self._fill(self._fill_in_racks(left) if racks else left)

    def _keep(self, member_id: str, owned: Mapping[TopicPartition, None]) -> None:
        fitting = []
        for partition in owned:
            if self._racks.mismatch(member_id, partition):
                self._revoked[partition] = member_id
            elif partition not in self._contested:
                fitting.append(partition)
        fitting.sort(key=lambda partition: (partition[1], partition[0]))
        kept = len(fitting)
        if kept < self._low:
            self._below.append(member_id)
        elif kept >= self._high and self._over < self._extra:
            kept = self._high
            self._count_over()
        else:
            kept = self._low
            if self._over < self._extra:
                self._at_low.append(member_id)
        self.shares[member_id] += fitting[:kept]
        self._revoked.update(dict.fromkeys(fitting[kept:], member_id))

    def _count_over(self) -> None:
        """One more member has `_high` partitions. After the last one, no other may have more than `_low`."""
        self._over += 1
        if self._over == self._extra:
            self._at_low.clear()

    def _fill_in_racks(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Assign partitions to members in their racks, in turn; what is left."""
        left, turn = [], 0
        for partition in partitions:
            index = self._racks.next_member(partition, self._below, turn)
            if index is not None:
                member_id = self._below[index]
                count = len(self.shares[member_id]) + 1
                if count >= self._low:
                    del self._below[index]
                    if count < self._high and self._over < self._extra:
                        self._at_low.append(member_id)
                else:
                    index += 1
                turn = index % len(self._below) if self._below else 0
            else:
                index = self._racks.next_member(partition, self._at_low, 0)
                if index is None:
                    left.append(partition)
                    continue
                member_id = self._at_low.pop(index)
                self._count_over()
            self._assign(partition, member_id)
        return left

    def _fill(self, partitions: Sequence[TopicPartition]) -> None:
        """Assign partitions in turn: first to members below their quota, then one more to others."""
        turn, next_at_low = 0, 0
        for partition in partitions:
            if not self._below:
                self._assign(partition, self._at_low[next_at_low])
                next_at_low += 1
                continue
            turn %= len(self._below)
            member_id = self._below[turn]
            self._assign(partition, member_id)
            if len(self.shares[member_id]) == self._low:
                del self._below[turn]
                self._at_low.append(member_id)
            else:
                turn += 1

    def _assign(self, partition: TopicPartition, member_id: str) -> None:
        self.shares[member_id].append(partition)
        if self._revoked.get(partition, member_id) != member_id or partition in self._contested:
            self.transferring[partition] = member_id
