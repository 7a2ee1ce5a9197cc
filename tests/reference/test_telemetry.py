"""Java's consumer and Kafka's tool for client metrics on this broker (KIP-714)."""

from __future__ import annotations

from typing import Any

from tests.harness.broker_program import eventually
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.java_tools import Java
from tests.harness.reference_kafka import KafkaTools


def test_javas_consumer_pushes_what_kafkas_tool_subscribes_to(tools: KafkaTools, our_cluster: Cluster) -> None:
    java, kgctl, topic = Java(tools, our_cluster), Kgctl(our_cluster.bootstrap_servers), fresh("telemetry")
    client = fresh("java")
    added = ("--metrics", "org.apache.kafka.consumer.", "--interval", 200, "--match", f"client_id={client}")
    java.run("client-metrics", "--alter", "--name", client, *added)
    assert client in java.run("client-metrics", "--list").split()
    assert "interval.ms=200" in java.run("client-metrics", "--describe", "--name", client)
    assert kgctl("topics", "create", topic).exit_code == 0
    consumer = tools.start(
        *("console-consumer", "--bootstrap-server", java.bootstrap, "--topic", topic),
        *("--consumer-property", f"client.id={client}"),
    )
    with consumer:
        try:

            def metrics() -> dict[str, Any]:
                found = kgctl("clients", "describe", client, "-o", "json")
                rows = kgctl.rows("clients", "describe", client) if found.exit_code == 0 else []
                return {row["metric"]: row for row in rows if row["metric"]}

            found = eventually(metrics, "the metrics of the consumer")
        finally:
            consumer.kill()
    (row,) = {(row["software_name"], row["error"]) for row in found.values()}
    assert row == ("apache-kafka-java", None)
    assert all(name.startswith("org.apache.kafka.consumer.") for name in found)
    java.run("client-metrics", "--delete", "--name", client)
    assert client not in java.run("client-metrics", "--list").split()
