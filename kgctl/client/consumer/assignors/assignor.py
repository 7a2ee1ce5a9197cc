"""What an assignor is given and what it returns: Kafka's ConsumerPartitionAssignor.

Pure: the leader of a group calls `assign` with what it knows. The coordinator carries subscriptions and assignments, and
reads neither.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol

from broker.light_dataclasses import dataclass, field
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.model.topic_partition import TopicPartition


class RebalanceProtocol(Enum):
    """EAGER members revoke all partitions before they rejoin; COOPERATIVE ones keep what they own (KIP-429)."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one member sent in JoinGroup. `generation_id` is -1 if the member has been in none or does not say."""

    topics: Sequence[str]
    user_data: bytes | None = None
    owned_partitions: Sequence[TopicPartition] = ()
    generation_id: int = -1
    rack_id: str | None = None
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the leader sends one member in SyncGroup."""

    partitions: Sequence[TopicPartition]
    user_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The topics of the group as the leader's metadata shows them. Topics that do not exist are missing.

    `replica_racks` has the racks of a partition's replicas; partitions without racks may be missing.
    """

    partition_counts: Mapping[str, int]
    replica_racks: Mapping[TopicPartition, Collection[str]] = field(default_factory=dict)

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(self.partition_counts[topic])]


class Assignor(Protocol):
    """One strategy of partition.assignment.strategy. An instance belongs to one consumer and may keep state.

    A class that derives from this one only has to have `name` and `assign`.
    """

    name: str
    """What JoinGroup carries. All members of a group must have one in common."""
    protocols: Sequence[RebalanceProtocol] = (RebalanceProtocol.EAGER,)
    version: int = 0
    """The version of the user data and of the algorithm."""

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """Data of this member for the leader, sent with its subscription to these topics."""
        return None

    def assign(self, cluster: ClusterView, members: Mapping[str, Subscription]) -> Mapping[str, Assignment]:
        """Assign the partitions of all subscribed topics; the leader calls this. The result has every member."""
        ...

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """Take note of what this member was assigned, in which generation."""


def subscribed_topics(cluster: ClusterView, members: Mapping[str, Subscription]) -> list[str]:
    """The existing topics that a member subscribes to, in Java's order of strings."""
    wanted = {topic for member in members.values() for topic in member.topics}
    return sorted((topic for topic in wanted if cluster.partition_counts.get(topic)), key=java_order)


def in_member_order(members: Mapping[str, Subscription]) -> list[str]:
    """Member ids: static members first, by instance id; the others by member id."""

    def order(member_id: str) -> tuple[bool, bytes]:
        instance = members[member_id].group_instance_id
        return instance is None, java_order(member_id if instance is None else instance)

    return sorted(members, key=order)


def as_assignments(partitions: Mapping[str, Iterable[TopicPartition]]) -> dict[str, Assignment]:
    return {member_id: Assignment(list(share)) for member_id, share in partitions.items()}


def java_order(text: str) -> bytes:
    """A key that sorts strings as Java does: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
