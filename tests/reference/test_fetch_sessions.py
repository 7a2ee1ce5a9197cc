"""Fetch sessions on a real Kafka, and Java's consumer, which uses them, on this broker."""

from __future__ import annotations

from tests.broker.server.test_fetch_sessions import RECORDED
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.fetch_walk import walk_all
from tests.harness.java_tools import Java
from tests.harness.reference_kafka import KafkaTools, ReferenceKafka
from tests.harness.wire_client import WireClient


def test_kafka_answers_the_walk_as_recorded(tools: KafkaTools) -> None:
    with ReferenceKafka() as kafka:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        assert walk_all(lambda: WireClient((host, int(port)))) == RECORDED.read_text().splitlines()


def test_javas_consumer_reads_through_a_session(tools: KafkaTools, our_cluster: Cluster) -> None:
    java, kgctl, topic = Java(tools, our_cluster), Kgctl(our_cluster.bootstrap_servers), fresh("sessions")
    assert kgctl("topics", "create", topic, "--partitions", 6).exit_code == 0
    sent = [f"v{number}" for number in range(200)]
    assert kgctl("produce", topic, text="\n".join(sent) + "\n").exit_code == 0
    read = java.run("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", len(sent))
    assert sorted(read.split()) == sorted(sent)
