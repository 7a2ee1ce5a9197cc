"""The doctor of clusters: each check finds what is wrong, and what is in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kgctl.model.cluster import BrokerFacts, ClusterFacts, PartitionFacts
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.cluster_doctor import examine

NOW = 1_700_000_000_000
ALL = frozenset({1, 2, 3})


def broker(number: int, **fields: Any) -> BrokerFacts:
    known: dict[str, Any] = {"cluster_id": "c", "known_brokers": ALL, "apis": {0: (0, 9), 3: (0, 12)}}
    return BrokerFacts(number, f"kafka-{number}:9092", **(known | fields))


def partition(
    topic: str = "orders",
    leader: int | None = 1,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] = (1, 2, 3),
) -> PartitionFacts:
    return PartitionFacts(TopicPartition(topic, 0), topic.startswith("__"), leader, replicas, isr)


HEALTHY = ClusterFacts(
    NOW,
    ("kafka-1:9092",),
    1,
    (broker(1, features={"metadata.version": 27}), broker(2), broker(3)),
    (partition(), partition("__consumer_offsets"), partition("__transaction_state")),
    3,
    ("Create", "Describe"),
    {"Read": 3, "Write": 1},
    NOW - 5,
)


def found(facts: ClusterFacts) -> set[tuple[str, str, str]]:
    return {(one.check, one.subject, str(one.severity)) for one in examine(facts)}


def test_a_healthy_cluster_has_only_what_is_in_order_and_what_cannot_be_known() -> None:
    rows = examine(HEALTHY)
    assert {str(row.severity) for row in rows} == {"ok", "unknown"}
    assert [row.check for row in rows if row.severity == "unknown"] == ["clocks"]
    texts = [row.evidence for row in rows]
    assert "2 APIs, the same versions on 3 brokers; metadata.version 27" in texts
    assert "3 partitions of 3 topics have all replicas in sync" in texts
    assert "of 3 visible topics: Read 3, Write 1, Alter 0, Delete 0" in texts


DOWN = broker(2, error=RowError("UNREACHABLE", "connection refused"))
FIRST, _, THIRD = HEALTHY.brokers


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"brokers": (FIRST, DOWN, THIRD)}, ("reachability", "broker 2", "error")),
        ({"brokers": (replace(FIRST, address="localhost:9092"),)}, ("reachability", "broker 1", "warning")),
        ({"brokers": (FIRST, broker(2, cluster_id="d"))}, ("membership", "cluster", "error")),
        ({"brokers": (FIRST, broker(2, known_brokers=frozenset({2})))}, ("membership", "broker 2", "warning")),
        ({"brokers": (FIRST, broker(2, apis={0: (0, 8), 3: (0, 12)}))}, ("versions", "broker 2", "warning")),
        ({"controller_id": None}, ("controller", "cluster", "error")),
        ({"partitions": (partition(leader=None),)}, ("partitions", "orders-0", "error")),
        ({"partitions": (partition(leader=9),)}, ("partitions", "orders-0", "error")),
        ({"partitions": (partition(isr=(1, 2)),)}, ("partitions", "orders-0", "warning")),
        ({"partitions": (partition(),)}, ("internal-topics", "__consumer_offsets", "info")),
        (
            {"partitions": (partition("__consumer_offsets", 1, (1,), (1,)),)},
            ("internal-topics", "__consumer_offsets", "warning"),
        ),
        ({"newest_commit_ms": NOW + 60_000}, ("clocks", "cluster", "warning")),
        ({"operations": ()}, ("permissions", "cluster", "info")),
        ({"operations": None}, ("permissions", "cluster", "unknown")),
        ({"topic_operations": {"Describe": 3}}, ("permissions", "topics", "info")),
    ],
)
def test_a_check_finds_what_is_wrong(changed: dict[str, Any], expected: tuple[str, str, str]) -> None:
    assert expected not in found(HEALTHY)
    assert expected in found(replace(HEALTHY, **changed))


def test_a_local_address_is_in_order_for_a_local_client() -> None:
    local = replace(HEALTHY, bootstrap=("127.0.0.1:9092",), brokers=(replace(FIRST, address="localhost:9092"),))
    assert ("reachability", "broker 1", "ok") in found(local)


def test_the_worst_comes_first_and_many_partitions_are_a_few_rows() -> None:
    many = tuple(replace(partition(leader=None), partition=TopicPartition("t", n)) for n in range(100))
    rows = examine(replace(HEALTHY, partitions=many))
    assert [row.subject for row in rows[:6]] == ["t-0", "t-1", "t-2", "t-3", "t-4", "95 more"]
