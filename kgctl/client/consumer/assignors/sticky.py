"""The sticky assignors: as balanced as possible, and each member keeps as much as possible of what it owned (KIP-54)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from kgctl.client.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    ClusterView,
    RebalanceProtocol,
    Subscription,
    as_assignments,
    subscribed_topics,
)
from kgctl.client.consumer.assignors.constrained import ConstrainedAssignment
from kgctl.client.consumer.assignors.general import GeneralAssignment
from kgctl.client.consumer.assignors.owners import PreviousOwners
from kgctl.client.consumer.assignors.past_ownership import (
    NO_GENERATION,
    MemberData,
    decode_cooperative,
    decode_sticky,
    encode_cooperative,
    encode_sticky,
)
from kgctl.client.consumer.assignors.racks import Racks
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.model.topic_partition import TopicPartition


class StickyAssignor(Assignor):
    """Eager: members give up all partitions and get most of them back. User data carries what they owned."""

    name = "sticky"

    def __init__(self) -> None:
        self._last: MemberData | None = None

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return None if self._last is None else encode_sticky(self._last)

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        self._last = MemberData(assignment.partitions, metadata.generation_id)

    def assign(self, cluster: ClusterView, members: Mapping[str, Subscription]) -> dict[str, Assignment]:
        shares, _ = _assign(cluster, members, decode_sticky)
        return as_assignments(shares)


class CooperativeStickyAssignor(Assignor):
    """Cooperative (KIP-429): a partition that moves is assigned to no member until its owner has revoked it and rejoins."""

    name = "cooperative-sticky"
    protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self) -> None:
        self._generation_id = NO_GENERATION

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return encode_cooperative(self._generation_id)

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        self._generation_id = metadata.generation_id

    def assign(self, cluster: ClusterView, members: Mapping[str, Subscription]) -> dict[str, Assignment]:
        shares, transferring = _assign(cluster, members, decode_cooperative)
        if transferring is None:
            transferring = _transferring(members, shares)
        return as_assignments(
            {
                member_id: [partition for partition in share if transferring.get(partition) != member_id]
                for member_id, share in shares.items()
            }
        )


def _assign(
    cluster: ClusterView, members: Mapping[str, Subscription], member_data: Callable[[Subscription], MemberData]
) -> tuple[dict[str, list[TopicPartition]], dict[TopicPartition, str] | None]:
    """The assignment, and the new members of partitions that others have to revoke first, if that is known."""
    existing = {topic: cluster.partition_counts[topic] for topic in subscribed_topics(cluster, members)}
    owners = PreviousOwners(existing, members, member_data)
    partitions = [partition for topic in existing for partition in cluster.partitions(topic)]
    racks = Racks(cluster, members, partitions)
    if len({frozenset(member.topics) for member in members.values()}) <= 1:
        if not members:
            return {}, {}
        built = ConstrainedAssignment(partitions, owners.owned, owners.contested, racks)
        return built.shares, built.transferring
    wanted = {
        member_id: {topic: None for topic in member.topics if topic in existing}
        for member_id, member in members.items()
    }
    return GeneralAssignment(existing, wanted, owners.owned, racks).build(owners.older()), None


def _transferring(
    members: Mapping[str, Subscription], shares: Mapping[str, Iterable[TopicPartition]]
) -> dict[TopicPartition, str]:
    """The partitions that some member has to revoke, with the member that is to get each."""
    revoked: set[TopicPartition] = set()
    added: dict[TopicPartition, str] = {}
    for member_id, share in shares.items():
        owned, assigned = set(members[member_id].owned_partitions), set(share)
        added.update(dict.fromkeys(assigned - owned, member_id))
        revoked |= owned - assigned
    return {partition: member_id for partition, member_id in added.items() if partition in revoked}
