"""Range and round-robin assignors: who of a group reads which partitions, equal to Kafka's Java clients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kgctl.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Subscriber:
    """What the group leader knows of one member."""

    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None


Assignment: TypeAlias = dict[str, list[TopicPartition]]
Assignor: TypeAlias = Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]


def assign_range(subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int]) -> Assignment:
    """Each topic on its own: neighbouring partitions to each of its subscribers, the first ones get one more.

    `partition_counts` lacks the topics that do not exist. Every member is in the result. Racks are not looked at.
    """
    assignment: Assignment = {one.member_id: [] for one in subscribers}
    ordered = sorted(subscribers, key=_order)
    for topic in _topics(subscribers, partition_counts):
        takers = [one.member_id for one in ordered if topic in one.topics]
        share, extra = divmod(partition_counts[topic], len(takers))
        start = 0
        for index, member_id in enumerate(takers):
            end = start + share + (index < extra)
            assignment[member_id] += [TopicPartition(topic, partition) for partition in range(start, end)]
            start = end
    return assignment


def assign_round_robin(subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int]) -> Assignment:
    """All partitions of all topics, dealt out like cards; who is not subscribed to a topic is passed over."""
    assignment: Assignment = {one.member_id: [] for one in subscribers}
    ordered = sorted(subscribers, key=_order)
    turn = 0
    for topic in _topics(subscribers, partition_counts):
        for partition in range(partition_counts[topic]):
            while topic not in ordered[turn % len(ordered)].topics:
                turn += 1
            assignment[ordered[turn % len(ordered)].member_id].append(TopicPartition(topic, partition))
            turn += 1
    return assignment


# The name stands in JoinGroup; every member of a group must offer a common one.
ASSIGNORS: dict[str, Assignor] = {"range": assign_range, "roundrobin": assign_round_robin}


def _topics(subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int]) -> list[str]:
    subscribed = set(itertools.chain.from_iterable(one.topics for one in subscribers))
    return sorted((topic for topic in subscribed if topic in partition_counts), key=_java_order)


def _order(subscriber: Subscriber) -> tuple[bool, bytes]:
    """Static members first, by instance id; the others by member id."""
    name = subscriber.instance_id
    return name is None, _java_order(subscriber.member_id if name is None else name)


def _java_order(text: str) -> bytes:
    """Java compares strings by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
