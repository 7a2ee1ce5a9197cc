"""Kafka's own share consumer (KIP-932) on our broker: acknowledgement, release, rejection, and what a killed member leaves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.local import LocalBroker
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from tests.clients.adapters import client_named
from tests.clients.records import make_topic, produce
from tests.harness.broker_program import eventually
from tests.harness.clusters import fresh
from tests.harness.java_tools import Java, ShareMember
from tests.harness.ports import kept_address
from tests.harness.reference_kafka import KafkaTools
from tests.harness.wire_client import WireClient

LIBRDKAFKA = "confluent-kafka"
TIMEOUTS = {
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "300",
}


@pytest.fixture
def served() -> Iterator[LocalBroker]:
    with LocalBroker(config=TIMEOUTS) as broker:
        yield broker


def begin(served: LocalBroker, group: str) -> None:
    """Enable share groups, and let the group begin with the oldest records."""
    host, port = served.bootstrap_servers.rsplit(":", 1)
    update = UpdateFeaturesRequest.Update(feature="share.version", max_version_level=1, upgrade_type=1)
    config = IncrementalAlterConfigsRequest.Config(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = IncrementalAlterConfigsRequest.Resource(resource_type=32, resource_name=group, configs=[config])
    with WireClient((host, int(port))) as client:
        assert not client.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code
        (row,) = client.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses
        assert not row.error_code, row.error_message


def test_records_are_released_rejected_and_redelivered_after_a_kill(tools: KafkaTools, served: LocalBroker) -> None:
    java, client, name = Java(tools, served), client_named(LIBRDKAFKA), fresh("share")
    begin(served, name)
    topic = make_topic(client, served, 1, "shared")
    first = ["accept-1", "release-2", "reject-3", "accept-4"]
    produce(client, served, topic, first, 1)
    with ShareMember(java, name, topic) as one:
        expected = [(value, 1) for value in first] + [("release-2", 2)]
        eventually(lambda: one.records() == expected, "the records, and the released one again")
        one.wait_for("acknowledged")
        produce(client, served, topic, ["hold-5", "hold-6"], 1)
        eventually(lambda: len(one.records()) > len(expected), "a record that it holds")
        held = one.records()[len(expected) :]
        with ShareMember(java, name, topic) as two:
            two.wait_for("startup_complete")
            one.kill()
            # The deliveries to the killed member do not count, as in Kafka.
            eventually(lambda: {*held} <= {*two.records()}, "the records of the killed member")
            assert {value for value, _ in two.records()} <= {"hold-5", "hold-6"}
            assert not [event for member in (one, two) for event in member.events if event["name"] == "failed"]


def test_members_share_the_records_of_a_partition(tools: KafkaTools, served: LocalBroker) -> None:
    java, client, name = Java(tools, served), client_named(LIBRDKAFKA), fresh("share")
    begin(served, name)
    topic = make_topic(client, served, 2, "shared")
    with ShareMember(java, name, topic) as one, ShareMember(java, name, topic) as two:
        for member in (one, two):
            member.wait_for("startup_complete")
        sent: list[str] = []

        def is_shared() -> bool:
            """Whether all records have arrived, and both members got some; else there are more records."""
            if len(one.records()) + len(two.records()) < len(sent):
                return False
            if one.records() and two.records():
                return True
            more = [f"accept-{number}" for number in range(len(sent), len(sent) + 50)]
            sent.extend(more)
            produce(client, served, topic, more, 2)
            return False

        eventually(is_shared, "records for both members")
        found = one.records() + two.records()
    assert sorted(found) == sorted((value, 1) for value in sent)


def test_a_member_continues_after_the_broker_was_killed(tools: KafkaTools) -> None:
    with LocalBroker(config=TIMEOUTS, listen=kept_address()) as served:
        java, client, name = Java(tools, served), client_named(LIBRDKAFKA), fresh("share")
        begin(served, name)
        topic = make_topic(client, served, 1, "shared")
        with ShareMember(java, name, topic) as one:
            before = [f"accept-{number}" for number in range(20)]
            produce(client, served, topic, before, 1)
            eventually(lambda: len(one.records()) == len(before), "the records")
            one.wait_for("acknowledged")
            served.kill()
            served.restart()
            after = [f"accept-{number}" for number in range(20, 40)]
            produce(client, served, topic, after, 1)
            eventually(lambda: len(one.records()) >= len(before + after), "the records from after the kill")
        # What was acknowledged before the kill is not delivered again.
        assert one.records() == [(value, 1) for value in before + after]
