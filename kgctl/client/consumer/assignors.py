"""Range and round-robin assignors, with the same results as Kafka's Java clients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from broker.light_dataclasses import dataclass
from kgctl.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Subscriber:
    """One member, as the group leader sees it."""

    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None


Assignment: TypeAlias = dict[str, list[TopicPartition]]
Assignor: TypeAlias = Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]


def assign_range(subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int]) -> Assignment:
    """Assign each topic separately: a range of partitions per subscriber; the first subscribers may get one more.

    `partition_counts` omits topics that do not exist. The result has every member. Racks are ignored.
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
    """Assign the partitions of all topics in turn, skipping members that are not subscribed to a topic."""
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


# JoinGroup carries the names; all members of a group must have one in common.
ASSIGNORS: dict[str, Assignor] = {"range": assign_range, "roundrobin": assign_round_robin}


def _topics(subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int]) -> list[str]:
    subscribed = set(itertools.chain.from_iterable(one.topics for one in subscribers))
    return sorted((topic for topic in subscribed if topic in partition_counts), key=_java_order)


def _order(subscriber: Subscriber) -> tuple[bool, bytes]:
    """Static members first, by instance id; the others by member id."""
    name = subscriber.instance_id
    return name is None, _java_order(subscriber.member_id if name is None else name)


def _java_order(text: str) -> bytes:
    """Java orders strings by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
