"""Kafka's formatters print the same for `__consumer_offsets` of our broker and of a Kafka with the same commits."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka as ck
import pytest

from broker.protocol.offsets_topic import partition_for
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.java_tools import Java
from tests.harness.reference_kafka import KafkaTools

TOPIC = "__consumer_offsets"
INSTANCE = "an-instance"
TIMES = {"commitTimestamp", "currentStateTimestamp"}
# Kafka 4.1 writes version 4 of the value, which has the same fields, and reads version 3 too.
OFFSET_VERSIONS = {3, 4}


@pytest.fixture
def java(tools: KafkaTools, cluster: Cluster) -> Java:
    return Java(tools, cluster)


def test_the_formatters_print_commits_and_members(cluster: Cluster, java: Java) -> None:
    group, topic, began_ms = fresh("formatted"), fresh("formatted"), time.time_ns() // 1_000_000
    kgctl = Kgctl(cluster.bootstrap_servers)
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    member_id = commit_as_a_member(cluster, kgctl, group, topic)
    remove_everything(kgctl, group, topic)

    def formatted(name: str) -> list[dict[str, Any]]:
        lines = java.formatted(name, TOPIC, partition_for(group))
        return [line for line in lines if line["key"]["data"]["group"] == group]

    offsets, groups = formatted("Offsets"), formatted("GroupMetadata")
    versions = {line["value"].pop("version") for line in offsets if line["value"]}
    assert versions <= OFFSET_VERSIONS
    moments = [moment for line in (*offsets, *groups) for moment in take_times(line)]
    assert all(began_ms - 1 <= moment <= time.time_ns() // 1_000_000 + 1 for moment in moments)

    def of(partition: int, value: dict[str, Any] | None) -> dict[str, Any]:
        key = {"type": 1, "data": {"group": group, "topic": topic, "partition": partition}}
        return {"key": key, "value": value and {"data": value}}

    # This client includes the terminating zero of the C string.
    assert offsets == [
        of(0, {"offset": 7, "leaderEpoch": -1, "metadata": ""}),
        of(1, {"offset": 2**40, "leaderEpoch": -1, "metadata": "mëta\0"}),
        of(0, {"offset": 5, "leaderEpoch": 0, "metadata": "back\0"}),
        of(1, None),
        of(0, None),
    ]

    def whole(generation: int, members: list[dict[str, Any]]) -> dict[str, Any]:
        value = {"protocolType": "consumer", "generation": generation, "members": members}
        chosen = {"protocol": "range", "leader": member_id} if members else {"protocol": None, "leader": None}
        return {"key": {"type": 2, "data": {"group": group}}, "value": {"version": 3, "data": value | chosen}}

    initial = whole(0, [])
    initial["value"]["data"]["protocolType"] = ""
    deleted = {"key": {"type": 2, "data": {"group": group}}, "value": None}
    (member,) = groups[1]["value"]["data"]["members"]
    blobs = {name: member.pop(name) for name in ("subscription", "assignment")}
    assert all(blobs.values())
    written = {
        "memberId": member_id,
        "groupInstanceId": INSTANCE,
        "clientId": "formatted",
        "clientHost": "/127.0.0.1",
        "rebalanceTimeout": 300_000,
        "sessionTimeout": 45_000,
    }
    assert groups == [initial, whole(1, [written]), whole(2, []), deleted]


def commit_as_a_member(cluster: Cluster, kgctl: Kgctl, group: str, topic: str) -> str:
    """Join as a static member with librdkafka, commit three times, and close without leaving. Returns the member id."""
    assigned: list[ck.TopicPartition] = []
    consumer = ck.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "group.instance.id": INSTANCE,
            "client.id": "formatted",
            "partition.assignment.strategy": "range",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic], on_assign=lambda _, given: assigned.extend(given))
        deadline = time.monotonic() + 30
        while not assigned:
            assert time.monotonic() < deadline
            consumer.poll(0.1)
        for place in (
            ck.TopicPartition(topic, 0, 7),
            ck.TopicPartition(topic, 1, 2**40, "mëta"),
            ck.TopicPartition(topic, 0, 5, "back", 0),
        ):
            (done,) = consumer.commit(offsets=[place], asynchronous=False)
            assert done.error is None
        (row,) = kgctl.rows("groups", "describe", group, "--members")
    finally:
        consumer.close()
    return str(row["consumer_id"])


def remove_everything(kgctl: Kgctl, group: str, topic: str) -> None:
    for arguments in (
        ("remove-members", group, "--instance", INSTANCE),
        ("delete-offsets", group, "--topic", f"{topic}:1"),
        ("delete", group),
    ):
        done = kgctl("groups", *arguments, "--execute")
        assert done.exit_code == 0, done.output


def take_times(line: dict[str, Any]) -> list[int]:
    """Remove and return the times, which differ from run to run."""
    fields = line["value"]["data"] if line["value"] else {}
    return [fields.pop(name) for name in sorted(TIMES & fields.keys())]
