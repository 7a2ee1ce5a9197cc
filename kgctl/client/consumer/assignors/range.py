"""The range assignor: each topic by itself, a range of partitions for each of its members; in their racks if possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kgctl.client.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    ClusterView,
    Subscription,
    as_assignments,
    in_member_order,
    subscribed_topics,
)
from kgctl.client.consumer.assignors.racks import member_racks, racks_matter
from kgctl.model.topic_partition import TopicPartition


class RangeAssignor(Assignor):
    """The first members of a topic get one partition more if the number of partitions does not divide evenly.

    If racks matter, members first get partitions with a replica in their rack (KIP-881). Topics with the same members and
    the same number of partitions stay co-partitioned: a member gets the same numbers of each.
    """

    name = "range"

    def assign(self, cluster: ClusterView, members: Mapping[str, Subscription]) -> dict[str, Assignment]:
        racks = member_racks(members)
        shares: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        ordered = in_member_order(members)
        subscribed = {member_id: frozenset(member.topics) for member_id, member in members.items()}
        topics = [
            _Topic(cluster, name, [one for one in ordered if name in subscribed[one]], racks, shares)
            for name in subscribed_topics(cluster, members)
        ]
        rack_aware = any(topic.racks_matter for topic in topics)
        if rack_aware:
            for alike in _co_partitioned(topics):
                _match_racks(alike)
        for topic in topics:
            topic.assign_ranges(lambda member_id, partition: True)
        if rack_aware:
            for share in shares.values():
                share.sort()
        return as_assignments(shares)


class _Topic:
    """One topic while it is assigned."""

    def __init__(
        self,
        cluster: ClusterView,
        name: str,
        member_ids: Sequence[str],
        racks: Mapping[str, str],
        shares: Mapping[str, list[TopicPartition]],
    ) -> None:
        self.name = name
        self.member_ids = tuple(member_ids)
        self.count = cluster.partition_counts[name]
        self._shares = shares
        self._left = dict.fromkeys(cluster.partitions(name))
        self._share, self._extra = divmod(self.count, len(self.member_ids))
        self._assigned = dict.fromkeys(self.member_ids, 0)
        self._member_racks = {one: racks[one] for one in self.member_ids if one in racks}
        known = cluster.replica_racks if self._member_racks else {}
        self._racks = {one: frozenset(known.get(one, ())) for one in self._left}
        self.racks_matter = racks_matter(set(self._member_racks.values()), self._racks.values())

    def in_rack(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether the partition has a replica in the rack of the member. A member without a rack is content with any."""
        rack = self._member_racks.get(member_id)
        return rack is None or rack in self._racks[partition]

    def room(self, member_id: str) -> int:
        """How many more partitions the member may get."""
        return max(0, self._share + (self._extra > 0) - self._assigned[member_id])

    def assign(self, member_id: str, partitions: Sequence[TopicPartition]) -> None:
        self._shares[member_id].extend(partitions)
        self._assigned[member_id] += len(partitions)
        if self._assigned[member_id] > self._share:
            self._extra -= 1
        for partition in partitions:
            del self._left[partition]

    def assign_ranges(self, allowed: Callable[[str, TopicPartition], bool]) -> None:
        for member_id in self.member_ids:
            room = self.room(member_id)
            given = [one for one in self._left if allowed(member_id, one)][:room] if room else []
            if given:
                self.assign(member_id, given)


def _co_partitioned(topics: Iterable[_Topic]) -> list[list[_Topic]]:
    """Topics with the same members and number of partitions, together."""
    groups: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
    for topic in topics:
        groups.setdefault((topic.member_ids, topic.count), []).append(topic)
    return list(groups.values())


def _match_racks(alike: Sequence[_Topic]) -> None:
    if len(alike) == 1:
        if alike[0].racks_matter:
            alike[0].assign_ranges(alike[0].in_rack)
        return
    remaining = list(alike[0].member_ids)
    for number in range(alike[0].count):
        taker = next((one for one in remaining if _can_take(alike, one, number)), None)
        if taker is None:
            continue
        for topic in alike:
            topic.assign(taker, [TopicPartition(topic.name, number)])
        if not any(topic.room(taker) for topic in alike):
            remaining.remove(taker)


def _can_take(alike: Sequence[_Topic], member_id: str, number: int) -> bool:
    return all(
        topic.room(member_id) and topic.in_rack(member_id, TopicPartition(topic.name, number)) for topic in alike
    )
