"""One partition of one topic, everywhere in kgctl."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_named_tuples import NamedTuple


class TopicPartition(NamedTuple):
    """Prints as Kafka prints it: orders-0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Keys:
    """One object per partition, however many groups read it."""

    def __init__(self) -> None:
        self._topics: dict[str, _OfTopic] = {}

    def of(self, topic: str) -> Mapping[int, TopicPartition]:
        """The partitions of a topic by number."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = _OfTopic(topic)
        return found


class _OfTopic(dict[int, TopicPartition]):
    def __init__(self, topic: str) -> None:
        super().__init__()
        self._topic = topic

    def __missing__(self, number: int) -> TopicPartition:
        key = self[number] = TopicPartition(self._topic, number)
        return key
