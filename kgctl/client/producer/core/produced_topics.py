"""The topics of a Produce request and of its answer: by id, if the broker takes ids (KIP-516), else by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from broker.protocol.wire_types import ZERO_UUID
from kgctl.client.producer.core.batch import Batch
from kgctl.model.topic_partition import TopicPartition

# Later versions name topics by id only.
MAX_VERSION_BY_NAME = 12


class ProducedTopics:
    """The batches of one request. It keeps the ids with which it was sent: the metadata may have others by the answer.

    An id makes sure that records go to the topic that the metadata describes, and not to a newer one of the same name,
    which refuses them with UNKNOWN_TOPIC_ID until the metadata is up to date.
    """

    def __init__(self, batches: Iterable[Batch], topic_id: Callable[[str], bytes | None]) -> None:
        self._names: dict[bytes, str] = {}
        self._has_ids = True
        topics: dict[str, ProduceRequest.Topic] = {}
        for batch in batches:
            name, index = batch.partition
            topic = topics.get(name)
            if topic is None:
                found = topic_id(name)
                self._has_ids = self._has_ids and found is not None
                topic = topics[name] = ProduceRequest.Topic(name=name, topic_id=found or ZERO_UUID, partition_data=[])
                self._names[topic.topic_id] = name
            topic.partition_data.append(ProduceRequest.Partition(index=index, records=batch.encoded))
        self.data = list(topics.values())

    @property
    def max_version(self) -> int:
        """Names are needed as long as one topic has no known id."""
        return max(ProduceRequest.VERSIONS) if self._has_ids else MAX_VERSION_BY_NAME

    def rows(self, answer: ProduceResponse, version: int) -> dict[TopicPartition, ProduceResponse.Partition]:
        """The rows of an answer. Topics that were not asked for are left out."""
        by_id = version > MAX_VERSION_BY_NAME
        rows: dict[TopicPartition, ProduceResponse.Partition] = {}
        for topic in answer.responses:
            name = self._names.get(topic.topic_id) if by_id else topic.name
            if name is not None:
                rows.update({TopicPartition(name, row.index): row for row in topic.partition_responses})
        return rows
