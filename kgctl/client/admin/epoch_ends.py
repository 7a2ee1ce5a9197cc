"""Where leader epochs end: below an offset that was read, its log was truncated since."""

from __future__ import annotations

from collections.abc import Mapping

from broker.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kgctl.client.admin.offsets import NO_REPLICA
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.topic_partition import TopicPartition

# Before, only brokers may ask (KIP-320).
_FIRST_VERSION = 3


def epoch_ends(
    cluster: Cluster, epochs: Mapping[TopicPartition, int]
) -> Steps[dict[TopicPartition, int | KgctlError | None]]:
    """The offset after the last record of each leader epoch on the current leader; None if the leader does not know it.

    An error is Unsupported for brokers before Kafka 2.3.
    """

    def make(node: Node, partitions: list[TopicPartition]) -> list[Batch[TopicPartition]]:
        topics: dict[str, OffsetForLeaderEpochRequest.Topic] = {}
        for one in partitions:
            topic = topics.setdefault(one.topic, OffsetForLeaderEpochRequest.Topic(topic=one.topic, partitions=[]))
            row = OffsetForLeaderEpochRequest.Partition(partition=one.partition, leader_epoch=epochs[one])
            topic.partitions.append(row)
        request = OffsetForLeaderEpochRequest(replica_id=NO_REPLICA, topics=list(topics.values()))
        ask = Ask(node.endpoint, request, OffsetForLeaderEpochResponse, _FIRST_VERSION)
        return [Batch(ask, partitions, _read)]

    return (yield from cluster.at_leaders(sorted(epochs), make))


def _read(answer: OffsetForLeaderEpochResponse) -> dict[TopicPartition, int | KgctlError | None]:
    found: dict[TopicPartition, int | KgctlError | None] = {}
    for topic in answer.topics:
        for row in topic.partitions:
            one = TopicPartition(topic.topic, row.partition)
            if row.error_code:
                asked = Asked(OffsetForLeaderEpochRequest, topic=topic.topic)
                found[one] = BrokerError(row.error_code, str(one), asked=asked, by_leader=True)
            else:
                found[one] = row.end_offset if row.end_offset >= 0 else None
    return found
