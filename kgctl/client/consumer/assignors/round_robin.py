"""The round-robin assignor: the partitions of all topics in turn."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.client.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    ClusterView,
    Subscription,
    as_assignments,
    in_member_order,
    subscribed_topics,
)
from kgctl.model.topic_partition import TopicPartition


class RoundRobinAssignor(Assignor):
    """Skips members that do not subscribe to the topic of a partition."""

    name = "roundrobin"

    def assign(self, cluster: ClusterView, members: Mapping[str, Subscription]) -> dict[str, Assignment]:
        shares: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        ordered = in_member_order(members)
        topics = {member_id: frozenset(members[member_id].topics) for member_id in members}
        turn = 0
        for topic in subscribed_topics(cluster, members):
            for partition in cluster.partitions(topic):
                while topic not in topics[ordered[turn]]:
                    turn = (turn + 1) % len(ordered)
                shares[ordered[turn]].append(partition)
                turn = (turn + 1) % len(ordered)
        return as_assignments(shares)
