"""Groups of members with an assignor each, and what must hold of every assignment."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgctl.client.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    ClusterView,
    RebalanceProtocol,
    Subscription,
)
from kgctl.client.consumer.assignors.loading import load_assignor
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.model.topic_partition import TopicPartition

Shares = dict[str, list[TopicPartition]]


@dataclass
class Member:
    assignor: Assignor
    topics: Sequence[str]
    rack: str | None = None
    instance: str | None = None
    owned: list[TopicPartition] = field(default_factory=list)
    generation: int = -1


class Group:
    """Members that rebalance: the first one is the leader. Cooperative members keep what they own meanwhile."""

    def __init__(self, assignor: str, counts: Mapping[str, int], replicas: Mapping[str, Sequence[str]] | None = None):
        """`replicas`: for each topic the racks of its partitions, as words: {"t": ["a b", "b c"]}."""
        self.assignor, self.counts = assignor, dict(counts)
        self.racks = {
            TopicPartition(topic, number): words.split()
            for topic, rows in (replicas or {}).items()
            for number, words in enumerate(rows)
        }
        self.members: dict[str, Member] = {}
        self.generation = 0

    def join(self, member_id: str, *topics: str, rack: str | None = None, instance: str | None = None) -> None:
        self.members[member_id] = Member(load_assignor(self.assignor), topics, rack, instance)

    def leave(self, member_id: str) -> None:
        del self.members[member_id]

    @property
    def owned(self) -> Shares:
        return {member_id: list(member.owned) for member_id, member in self.members.items()}

    def subscriptions(self) -> dict[str, Subscription]:
        return {member_id: self._subscription(member) for member_id, member in self.members.items()}

    def _subscription(self, member: Member) -> Subscription:
        cooperative = RebalanceProtocol.COOPERATIVE in member.assignor.protocols
        return Subscription(
            topics=member.topics,
            user_data=member.assignor.subscription_user_data(member.topics),
            owned_partitions=tuple(member.owned) if cooperative else (),
            generation_id=member.generation,
            rack_id=member.rack,
            group_instance_id=member.instance,
        )

    def rebalance(self, *, missed_by: Iterable[str] = ()) -> Shares:
        """One generation. Members that miss it keep what they have, and report it with their old generation."""
        leader = next(iter(self.members.values())).assignor
        assigned = leader.assign(ClusterView(self.counts, self.racks), self.subscriptions())
        assert assigned.keys() == self.members.keys()
        self.generation += 1
        for member_id, given in assigned.items():
            if member_id not in missed_by:
                self.receive(member_id, given)
        return {member_id: list(given.partitions) for member_id, given in assigned.items()}

    def receive(self, member_id: str, given: Assignment) -> None:
        member = self.members[member_id]
        member.owned, member.generation = list(given.partitions), self.generation
        member.assignor.on_assignment(given, ConsumerGroupMetadata("group", self.generation, member_id))

    def settle(self) -> Shares:
        """Rebalance; cooperative members until none has to give up anything."""
        if self.assignor == "sticky":
            return self.rebalance()
        for _ in range(5):
            before, shares = self.owned, self.rebalance()
            check_handed_over(before, shares)
            if all(set(before[member_id]) <= set(shares[member_id]) for member_id in shares):
                return shares
        raise AssertionError("the group does not settle")

    def check(self, shares: Shares) -> None:
        check_valid(shares, self.counts, {member_id: member.topics for member_id, member in self.members.items()})

    def mismatches(self, shares: Shares) -> int:
        """Partitions whose member has a rack without a replica."""
        return sum(
            self.members[member_id].rack is not None and self.members[member_id].rack not in self.racks[partition]
            for member_id, share in shares.items()
            for partition in share
        )


def check_valid(shares: Shares, counts: Mapping[str, int], topics: Mapping[str, Sequence[str]]) -> None:
    """Each partition of a subscribed topic has exactly one owner, which subscribes to it."""
    subscribed = {topic for theirs in topics.values() for topic in theirs if topic in counts}
    everything = sorted(TopicPartition(topic, number) for topic in subscribed for number in range(counts[topic]))
    assert sorted(itertools.chain.from_iterable(shares.values())) == everything
    for member_id, share in shares.items():
        assert {partition.topic for partition in share} <= set(topics[member_id])


def check_balanced(shares: Shares, topics: Mapping[str, Sequence[str]]) -> None:
    """No partition could go to a member that has at least two partitions fewer than its owner."""
    for small, large in itertools.permutations(shares, 2):
        if len(shares[small]) + 1 < len(shares[large]):
            assert not {partition.topic for partition in shares[large]} & set(topics[small])


def check_handed_over(before: Shares, after: Shares) -> None:
    """No member gets a partition that another member still owns."""
    owner = {partition: member_id for member_id, share in before.items() for partition in share}
    for member_id, share in after.items():
        assert all(owner.get(partition, member_id) == member_id for partition in share)


def moves(before: Shares, after: Shares) -> dict[TopicPartition, tuple[str, str]]:
    """The partitions that went from one member to another, both of which were and are in the group."""
    owner = {partition: member_id for member_id, share in before.items() for partition in share}
    return {
        partition: (owner[partition], member_id)
        for member_id, share in after.items()
        if member_id in before
        for partition in share
        if owner.get(partition, member_id) not in {member_id} and owner[partition] in after
    }


def parts(text: str) -> list[TopicPartition]:
    """ "t0-1 t0-2" """
    return [TopicPartition(topic, int(index)) for topic, _, index in (word.rpartition("-") for word in text.split())]
