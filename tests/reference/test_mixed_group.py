"""A group of Kafka's own consumer, librdkafka and kafka-python: each partition has one owner, no record is missed."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.clients.adapters import client_named
from tests.clients.group import Group
from tests.clients.records import produce, values
from tests.harness.broker_program import eventually
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.java_tools import Java, JavaMember
from tests.harness.reference_kafka import KafkaTools

PARTITIONS = 6
SESSION_TIMEOUT_MS = 4000


@pytest.mark.flaky(reruns=2)  # kafka-python 3.0.12 sometimes never starts fetching its partitions.
def test_three_clients_share_a_group_and_two_take_over_when_the_java_one_is_killed(
    tools: KafkaTools, our_cluster: Cluster, tmp_path: Path
) -> None:
    java, kgctl = Java(tools, our_cluster), Kgctl(our_cluster.bootstrap_servers)
    librdkafka, name, topic = client_named("confluent-kafka"), fresh("mixed"), fresh("mixed")
    assert kgctl("topics", "create", topic, "--partitions", PARTITIONS).exit_code == 0
    sent = values("before", 60)
    produce(librdkafka, our_cluster, topic, sent, PARTITIONS)
    config = tmp_path / "consumer.properties"
    config.write_text("heartbeat.interval.ms=300\n")
    options = ("--session-timeout", SESSION_TIMEOUT_MS, "--verbose", "--consumer.config", config)

    def group_of(client: str) -> Group:
        return Group(client, java.bootstrap, name, topic, session_timeout_ms=SESSION_TIMEOUT_MS)

    with (
        JavaMember(java, name, topic, *options) as member,
        group_of("confluent-kafka") as left,
        group_of("kafka-python") as right,
    ):
        groups = (left, right)

        def read_by_python() -> set[str]:
            return {value for group in groups for _, _, value in group.received}

        def committed() -> dict[int, int]:
            rows = kgctl.rows("groups", "describe", name, "--offsets")
            return {row["partition"]: row["current_offset"] for row in rows}

        def shared(*sizes: int) -> bool:
            parts = [member.owned(topic), *(one.owned for group in groups for one in group.live())]
            whole = sorted(partition for part in parts[-len(sizes) :] for partition in part)
            return whole == list(range(PARTITIONS)) and tuple(map(len, parts[-len(sizes) :])) == sizes

        member.wait_for("partitions_assigned")
        for group in groups:
            group.start(1)
        eventually(lambda: shared(2, 2, 2), "two partitions for each of the three members")
        rows = kgctl.rows("groups", "describe", name, "--members", "--verbose")
        assert sorted(row["partitions"] for row in rows) == [2, 2, 2]
        sent += (second := values("shared", 60))
        produce(librdkafka, our_cluster, topic, second, PARTITIONS)
        eventually(lambda: committed() == dict.fromkeys(range(PARTITIONS), 20), "all commits")
        by_java = {event["value"] for event in member.events if event["name"] == "record_data"}
        assert by_java | read_by_python() == set(sent)
        # Records produced after the assignment reach exactly one member.
        assert not by_java & read_by_python() & set(second)
        assert {value for value in second if value in by_java} == {
            value for n, value in enumerate(second) if n % PARTITIONS in member.owned(topic)
        }
        moved = member.owned(topic)

        member.kill()
        eventually(lambda: shared(3, 3), "the two others to own the partitions of the killed member")
        (event,) = kgctl.rows("groups", "history", name)[-1:]
        assert (event["event"], event["cause"], event["members"]) == ("stable", "session timed out", 2)
        assert len(event["left"]) == 1
        assert event["partitions_moved"] >= len(moved)
        third = values("after", 60)
        produce(librdkafka, our_cluster, topic, third, PARTITIONS)
        eventually(lambda: committed() == dict.fromkeys(range(PARTITIONS), 30), "all commits of the two members")
        assert set(third) <= read_by_python()


def test_a_verifiable_consumer_reads_what_the_verifiable_producer_sent(tools: KafkaTools, our_cluster: Cluster) -> None:
    java, topic = Java(tools, our_cluster), fresh("counted")
    assert Kgctl(our_cluster.bootstrap_servers)("topics", "create", topic, "--partitions", 3).exit_code == 0
    java.run("verifiable-producer", "--topic", topic, "--max-messages", 3000, "--acks", -1)
    with JavaMember(java, fresh("counted"), topic, "--max-messages", 3000, "--verbose") as member:
        member.wait_for("shutdown_complete")
        read = [int(event["value"]) for event in member.events if event["name"] == "record_data"]
        assert sorted(read) == list(range(3000))
        commits = [event for event in member.events if event["name"] == "offsets_committed"]
        assert all(event["success"] for event in commits)
        reached = {place["partition"]: place["offset"] for event in commits for place in event["offsets"]}
        assert sum(reached.values()) == 3000


JAVA = {
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


@pytest.mark.parametrize("leader", ["ours", "javas"])
@pytest.mark.parametrize("assignor", JAVA)
def test_members_of_java_and_kgctl_keep_their_partitions_whoever_leads(
    tools: KafkaTools, our_cluster: Cluster, tmp_path: Path, assignor: str, leader: str
) -> None:
    """User data and owned partitions say what members had; the leader understands those of the other client."""
    java, kgctl = Java(tools, our_cluster), Kgctl(our_cluster.bootstrap_servers)
    name, topic = fresh("sticky"), fresh("sticky")
    assert kgctl("topics", "create", topic, "--partitions", PARTITIONS).exit_code == 0
    config = tmp_path / "consumer.properties"
    config.write_text("heartbeat.interval.ms=300\n")
    options = ("--session-timeout", 10_000, "--assignment-strategy", JAVA[assignor], "--consumer.config", config)
    ours = Group("kgctl", java.bootstrap, name, topic, assignor=assignor, session_timeout_ms=10_000)
    javas = JavaMember(java, name, topic, *options)

    def shares() -> list[set[int]]:
        return [javas.owned(topic), *(set(member.owned) for member in ours.live())]

    def wait_for(*sizes: int) -> list[set[int]]:
        def shared() -> bool:
            parts = shares()
            whole = sorted(p for part in parts for p in part) == list(range(PARTITIONS))
            return whole and sorted(map(len, parts)) == sorted(sizes)

        eventually(shared, f"shares of {sizes}")
        return shares()

    with contextlib.ExitStack() as stack:
        stack.enter_context(ours)
        if leader == "ours":
            ours.start(1)
            wait_for(0, 6)
            stack.enter_context(javas)
        else:
            stack.enter_context(javas)
            wait_for(6)
            ours.start(1)
        before = wait_for(3, 3)
        (third,) = ours.start(1)
        kept = wait_for(2, 2, 2)
        assert all(now < then for now, then in zip(kept, before, strict=False))
        third.leave()
        assert all(then < now for then, now in zip(kept, wait_for(3, 3), strict=False))
