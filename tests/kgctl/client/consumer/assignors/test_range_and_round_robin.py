"""The range and round-robin assignors give the same assignments as Kafka's clients."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kgctl.client.consumer.assignors.assignor import Assignor, ClusterView, Subscription
from kgctl.client.consumer.assignors.range import RangeAssignor
from kgctl.client.consumer.assignors.round_robin import RoundRobinAssignor
from kgctl.model.topic_partition import TopicPartition
from tests.harness.independent import RangePartitionAssignor, RoundRobinPartitionAssignor


def parts(text: str) -> list[TopicPartition]:
    """ "t0-1 t0-2" """
    return [TopicPartition(topic, int(index)) for topic, _, index in (word.rpartition("-") for word in text.split())]


def everyone_reads(*topics: str, members: str = "C0 C1") -> dict[str, Subscription]:
    return {member: Subscription(topics) for member in members.split()}


def assigned(
    assignor: Assignor, members: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    return {member: list(share.partitions) for member, share in assignor.assign(ClusterView(counts), members).items()}


def assign_range(members: Mapping[str, Subscription], counts: Mapping[str, int]) -> dict[str, list[TopicPartition]]:
    return assigned(RangeAssignor(), members, counts)


def assign_round_robin(
    members: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    return assigned(RoundRobinAssignor(), members, counts)


both = pytest.mark.parametrize("assign", [assign_range, assign_round_robin])


def test_range_gives_the_first_members_of_each_topic_one_partition_more() -> None:
    assert assign_range(everyone_reads("t0", "t1"), {"t0": 3, "t1": 3}) == {
        "C0": parts("t0-0 t0-1 t1-0 t1-1"),
        "C1": parts("t0-2 t1-2"),
    }


def test_range_leaves_members_without_partitions_if_there_are_too_few() -> None:
    assert assign_range(everyone_reads("t", members="a b c"), {"t": 2}) == {
        "a": parts("t-0"),
        "b": parts("t-1"),
        "c": [],
    }


def test_round_robin_deals_across_topics() -> None:
    assert assign_round_robin(everyone_reads("t0", "t1"), {"t0": 3, "t1": 3}) == {
        "C0": parts("t0-0 t0-2 t1-1"),
        "C1": parts("t0-1 t1-0 t1-2"),
    }


def test_round_robin_skips_members_that_do_not_subscribe_to_the_topic() -> None:
    subscribers = {
        "C0": Subscription(("t0",)),
        "C1": Subscription(("t0", "t1")),
        "C2": Subscription(("t0", "t1", "t2")),
    }
    assert assign_round_robin(subscribers, {"t0": 1, "t1": 2, "t2": 3}) == {
        "C0": parts("t0-0"),
        "C1": parts("t1-0"),
        "C2": parts("t1-1 t2-0 t2-1 t2-2"),
    }


@both
def test_static_members_come_first_in_the_order_of_their_instance_ids(assign: Any) -> None:
    subscribers = {
        "a": Subscription(("t",)),
        "x": Subscription(("t",), group_instance_id="i2"),
        "z": Subscription(("t",), group_instance_id="i1"),
    }
    assert assign(subscribers, {"t": 3}) == {"z": parts("t-0"), "x": parts("t-1"), "a": parts("t-2")}


@both
def test_a_topic_that_does_not_exist_is_left_out(assign: Any) -> None:
    assert assign(everyone_reads("t", "missing", members="a"), {"t": 1}) == {"a": parts("t-0")}


@both
def test_without_subscriptions_no_member_gets_partitions(assign: Any) -> None:
    assert assign({}, {"t": 3}) == {}
    assert assign({"a": Subscription(())}, {"t": 3}) == {"a": []}


def test_range_agrees_with_kafka_python() -> None:
    for seed in range(40):
        subscribers, counts = random_group(random.Random(seed), same_topics=False)
        expected = theirs(RangePartitionAssignor, subscribers, counts)
        assert grouped(assign_range(subscribers, counts)) == expected, seed


def test_round_robin_agrees_with_kafka_python() -> None:
    for seed in range(40):
        # kafka-python 3.0.12 fails when members subscribe to different topics.
        subscribers, counts = random_group(random.Random(seed), same_topics=True)
        expected = theirs(RoundRobinPartitionAssignor, subscribers, counts)
        assert grouped(assign_round_robin(subscribers, counts)) == expected, seed


def random_group(chance: random.Random, *, same_topics: bool) -> tuple[dict[str, Subscription], dict[str, int]]:
    topics = [f"topic-{number}" for number in range(chance.randint(1, 6))]
    members = [f"consumer-{chance.randrange(10**6)}" for _ in range(chance.randint(1, 8))]
    read = tuple(chance.sample(topics, chance.randint(1, len(topics))))
    subscribers = {
        member: Subscription(read if same_topics else tuple(chance.sample(topics, chance.randint(1, len(topics)))))
        for member in members
    }
    return subscribers, {topic: chance.randint(1, 12) for topic in topics}


def grouped(assignment: Mapping[str, Sequence[TopicPartition]]) -> dict[str, dict[str, list[int]]]:
    result: dict[str, dict[str, list[int]]] = {member: {} for member in assignment}
    for member, partitions in assignment.items():
        for topic, index in partitions:
            result[member].setdefault(topic, []).append(index)
    return result


def theirs(
    assignor: Any, subscribers: Mapping[str, Subscription], counts: Mapping[str, int]
) -> dict[str, dict[str, list[int]]]:
    cluster = SimpleNamespace(partitions_for_topic=lambda topic: set(range(counts[topic])) if topic in counts else None)
    members = [
        SimpleNamespace(
            member_id=member_id,
            group_instance_id=one.group_instance_id,
            metadata=SimpleNamespace(topics=list(one.topics)),
        )
        for member_id, one in subscribers.items()
    ]
    return {
        member: {topic: list(indexes) for topic, indexes in given.assigned_partitions if indexes}
        for member, given in assignor.assign(cluster, members).items()
    }
