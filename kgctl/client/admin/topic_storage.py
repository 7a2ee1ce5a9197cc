"""What the logs of topics take and how long they keep records."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.client.admin.offsets import list_offsets
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.topic_partition import TopicPartition

# A lookup by this time finds the first record that has a timestamp.
_BEGINNING = 0


def partitions_of(cluster: Cluster) -> Steps[list[TopicPartition]]:
    """The partitions of all topics that have a leader."""
    answer = yield from cluster.metadata(None)
    return [
        TopicPartition(topic.name or "", row.partition_index)
        for topic in answer.topics
        for row in topic.partitions
        if row.leader_id >= 0
    ]


def oldest_times(cluster: Cluster, partitions: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, int]]:
    """The timestamp of the first record of each log; empty logs and partitions with an error are absent."""
    found = yield from list_offsets(cluster, dict.fromkeys(partitions, _BEGINNING))
    return {key: at.timestamp for key, at in found.items() if not isinstance(at, KgctlError) and at.timestamp >= 0}
