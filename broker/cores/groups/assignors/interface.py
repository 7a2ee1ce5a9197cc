"""What an assignor on the broker is given and what it returns: Kafka's ConsumerGroupPartitionAssignor (KIP-848)."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from typing import Protocol, TypeAlias, cast

from broker.light_named_tuples import NamedTuple

TopicId: TypeAlias = bytes  # 16 bytes, as requests and records carry it

Assignment: TypeAlias = "Mapping[TopicId, tuple[int, ...]]"
"""Partitions by topic. No topic has an empty tuple, and no partition is in it twice.

Topics and partitions are in the order in which Kafka's hash maps iterate over them. `ConsumerGroupTargetAssignmentMember` has this
order, too: assignments that keep the order of their records lead to the same assignments as in Kafka. Only the code of the assignors
depends on it; an assignment is the same in any order.
"""

SERVER_ASSIGNORS = {
    "uniform": ("uniform", "UniformAssignor"),
    "range": ("range", "RangeAssignor"),
}
"""Module and class by name, in the order of Kafka's default for group.consumer.assignors."""


class PartitionAssignorError(Exception):
    """There is no assignment; the message says why. Kafka: PartitionAssignorException."""


class MemberSpec(NamedTuple):
    """What an assignor gets about one member.

    `subscribed` has the ids of the topics that exist and that the member subscribes to by name or by pattern; the names are in the order
    of `java_order.set_order`. Members with the same subscription may share the collection; that is faster. `assigned` is the member's part of the target assignment so far, which
    may hold topics that are no longer in `subscribed`. `missing` is the number of names in the subscription without a topic; Java's sets
    are larger for them.
    """

    subscribed: Collection[TopicId]
    assigned: Assignment
    instance_id: str | None = None
    rack_id: str | None = None
    missing: int = 0


class TopicDescriber(Protocol):
    """The topics of the cluster. Kafka: SubscribedTopicDescriber."""

    def partition_count(self, topic_id: TopicId) -> int:
        """The number of partitions; -1 if there is no such topic."""
        ...

    def racks(self, topic_id: TopicId, partition: int) -> frozenset[str]:
        """The racks of the partition's replicas, as far as they are known."""
        ...


class Assignor(Protocol):
    """One of group.consumer.assignors. It has no state."""

    @property
    def name(self) -> str: ...

    def assign(
        self, members: Mapping[str, MemberSpec], is_homogeneous: bool, topics: TopicDescriber
    ) -> dict[str, Assignment]:
        """The new target assignment of each member, in the order of Kafka's records.

        `members` are in the order in which Kafka's map of them iterates: that of `java_order.map_order`, into which come those of the
        group in the order of `java_order.timeline_order`, then the one that joins with this request.
        `is_homogeneous`: all members have the same subscription. A member whose assignment does not change gets the very object that
        is in its `assigned`. Raises PartitionAssignorError.
        """
        ...


def load_assignor(name: str) -> Assignor:
    """The assignor with a name of `SERVER_ASSIGNORS`; its module is imported at the first use."""
    module, class_name = SERVER_ASSIGNORS[name]
    return cast(Assignor, getattr(importlib.import_module(f"broker.cores.groups.assignors.{module}"), class_name)())
