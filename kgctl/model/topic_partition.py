"""One partition of one topic, everywhere in kgctl."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.light_named_tuples import NamedTuple


class TopicPartition(NamedTuple):
    """Prints as Kafka prints it: orders-0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def ranges(numbers: Iterable[int]) -> str:
    """Sorted numbers with neighbours as ranges: "0-11,14"; "" for none."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def in_ranges(partitions: Iterable[TopicPartition]) -> str:
    """Partitions as commands take them: "orders:0-2,5 payments:1"; "" for none."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return " ".join(f"{topic}:{ranges(numbers)}" for topic, numbers in topics.items())


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
