"""Looks up a topic to write to, which the broker may create. Steps without I/O."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import BrokerError, NotFound
from kgctl.client.net.steps import Pause, Steps


@dataclass(frozen=True, slots=True)
class OpenedTopic:
    name: str
    partition_count: int
    was_created: bool

    def creation(self) -> str:
        """Kafka's console producer warns as well, in a line of its log."""
        partitions = "1 partition" if self.partition_count == 1 else f"{self.partition_count} partitions"
        return f"Topic {self.name!r} did not exist; the broker created it with {partitions}"


def open_topic(cluster: Cluster, topic: str) -> Steps[OpenedTopic]:
    """Look up the topic; let the broker create a missing one, and wait a few seconds for its leaders.

    Raises NotFound if the topic does not exist and the broker does not create topics.
    """
    known = yield from cluster.metadata([topic])
    was_missing = known.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    request = MetadataRequest(topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=True)
    for wait in (*cluster.retry_waits, None):
        answer = yield from cluster.ask_any(request, MetadataResponse, min_version=4)
        row = answer.topics[0]
        code = row.error_code
        if not code and any(partition.leader_id >= 0 for partition in row.partitions):
            yield from cluster.metadata([topic])
            return OpenedTopic(topic, len(row.partitions), was_missing)
        error = BrokerError(
            code or ErrorCode.LEADER_NOT_AVAILABLE, f"topic {topic!r}", asked=Asked(MetadataRequest, topic=topic)
        )
        if not error.retriable and code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
        if wait is not None:
            yield Pause(wait, str(error))
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise NotFound(f"topic {topic!r} does not exist, and the broker does not create it")
    raise error
