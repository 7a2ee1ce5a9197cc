"""Kafka's own consumer with group.protocol=consumer (KIP-848) in groups of our broker, alone and with librdkafka."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from broker.local import LocalBroker
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from tests.clients.adapters import client_named
from tests.clients.group import Group
from tests.clients.records import make_topic, produce, values
from tests.harness.broker_program import eventually
from tests.harness.clusters import fresh
from tests.harness.java_tools import Java, JavaMember, PatternMember
from tests.harness.reference_kafka import KafkaTools
from tests.harness.wire_client import WireClient

LIBRDKAFKA = "confluent-kafka"
PARTITIONS = 6
TIMEOUTS = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}


@pytest.fixture
def served() -> Iterator[LocalBroker]:
    with LocalBroker(config=TIMEOUTS) as broker:
        yield broker


def test_three_members_share_the_topics_of_a_pattern_and_two_take_over_when_one_is_killed(
    tools: KafkaTools, served: LocalBroker
) -> None:
    java, client, name, stem = Java(tools, served), client_named(LIBRDKAFKA), fresh("pattern"), fresh("matched")
    first = make_topic(client, served, PARTITIONS, stem)
    make_topic(client, served, PARTITIONS, f"not-{stem}")
    sent = values("before", 60)
    produce(client, served, first, sent, PARTITIONS)
    with contextlib.ExitStack() as stack:
        members = [stack.enter_context(PatternMember(java, name, f"{stem}.*")) for _ in range(3)]
        eventually(lambda: _owned(members, first) == [2, 2, 2], "two partitions for each member")

        second = make_topic(client, served, 3, stem)
        eventually(lambda: _owned(members, second) == [1, 1, 1], "the new topic")
        produce(client, served, second, more := values("second", 60), 3)
        sent += more
        eventually(lambda: {*sent} == {*_values(members)}, "all records")
        assert len(_values(members)) == len(sent)

        group = _describe(served, name)
        assert (group.group_state, group.assignor_name, len(group.members)) == ("Stable", "uniform", 3)
        assert {member.subscribed_topic_regex for member in group.members} == {f"{stem}.*"}
        members[0].kill()
        eventually(lambda: sum(_owned(members[1:], first)) == PARTITIONS, "the killed member's partitions")
        eventually(lambda: sum(_owned(members[1:], second)) == 3, "the killed member's partitions")
        produce(client, served, first, after := values("after", 60), PARTITIONS)
        eventually(lambda: {*sent, *after} == {*_values(members)}, "all records")
        assert len(_values(members)) == len(sent) + len(after)
        assert _describe(served, name).group_epoch > group.group_epoch


def test_java_and_librdkafka_share_a_group(tools: KafkaTools, served: LocalBroker) -> None:
    java, client, name = Java(tools, served), client_named(LIBRDKAFKA), fresh("mixed")
    topic = make_topic(client, served, PARTITIONS, "mixed")
    options = ("--group-protocol", "consumer", "--verbose")
    with (
        JavaMember(java, name, topic, *options) as one,
        Group(LIBRDKAFKA, java.bootstrap, name, topic, protocol="consumer") as others,
    ):
        one.wait_for("partitions_assigned")
        first, _ = others.start(2)
        eventually(lambda: _owned([one], topic) == [2], "two partitions for the Java member")
        others.wait_until_shared([2, 2])
        assert sorted([*one.owned(topic), *(place for member in others.live() for place in member.owned)]) == [
            *range(6)
        ]
        sent = values("mixed", 60)
        produce(client, served, topic, sent, PARTITIONS)
        eventually(lambda: {*sent} == {*_values([one]), *(value for _, _, value in others.received)}, "all records")
        assert len(_values([one])) + len(others.received) == len(sent)
        assert _describe(served, name).group_state == "Stable"

        one.kill()
        others.wait_until_shared([3, 3])
        first.leave()
        others.wait_until_shared([6])


def _describe(served: LocalBroker, group: str) -> ConsumerGroupDescribeResponse.Group:
    host, port = served.bootstrap_servers.split(":")
    with WireClient((host, int(port))) as admin:
        (found,) = admin.ask(ConsumerGroupDescribeRequest(group_ids=[group])).groups
    assert not found.error_code
    return found


def _owned(members: list[PatternMember] | list[JavaMember], topic: str) -> list[int]:
    """How many partitions each member owns, if none of them has two owners."""
    parts = [member.owned(topic) for member in members]
    return [len(part) for part in parts] if len(set().union(*parts)) == sum(map(len, parts)) else []


def _values(members: list[PatternMember] | list[JavaMember]) -> list[str]:
    return [event["value"] for member in members for event in list(member.events) if event["name"] == "record_data"]
