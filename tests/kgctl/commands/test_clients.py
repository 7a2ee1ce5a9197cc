"""`kgctl clients`, on our broker and on a Kafka, which does not offer it."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, member_of
from tests.harness.reference_kafka import ReferenceKafka
from tests.harness.running import until


@pytest.fixture
def kgctl(our_cluster: Cluster) -> Kgctl:
    return Kgctl(our_cluster.bootstrap_servers)


def test_another_broker_cannot_list_its_clients(cluster: Cluster) -> None:
    result = Kgctl(cluster.bootstrap_servers)("clients", "list")
    if isinstance(cluster, ReferenceKafka):
        assert result.exit_code == 1
        assert "the cluster does not say who is connected to it: only kgctl's broker does" in result.stderr
    else:
        assert result.exit_code == 0


def test_connections_are_listed_with_their_software_and_groups(kgctl: Kgctl) -> None:
    topic, group = fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic).exit_code == 0
    with member_of(kgctl, group, {topic: [0]}):
        (member,) = kgctl.rows("clients", "list", "--group", group)
        rows = kgctl.rows("clients", "list", "--client-id", "kgctl")
        table = kgctl("clients", "list", "--group", group).stdout.splitlines()
    assert member["groups"] == [group]
    assert member["requests"] > 0
    assert min(member["age_ms"], member["idle_ms"], member["bytes_in"], member["bytes_out"]) >= 0
    assert rows[-1]["software_name"] == "kgctl"
    assert rows[-1]["last_request"] == "DescribeClients"
    assert [row["number"] for row in rows] == sorted(row["number"] for row in rows)
    assert table[0].split()[:4] == ["ADDRESS", "CLIENT-ID", "SOFTWARE", "PRINCIPAL"]
    assert len(table) == 2


def test_no_match_is_said(kgctl: Kgctl) -> None:
    result = kgctl("clients", "list", "--client-id", fresh("nobody"))
    assert (result.exit_code, result.stderr) == (0, "No connection matches.\n")


def test_the_metrics_that_a_client_pushed_are_shown(our_cluster: Cluster) -> None:
    kgctl, name = Kgctl(our_cluster.bootstrap_servers), fresh("app")
    subscribed = ("metrics=*", "interval.ms=100", f"match=client_id={name}")
    assert kgctl("configs", "set", "client-metrics", name, *subscribed, "--execute").exit_code == 0
    producer = Producer(
        {"bootstrap.servers": our_cluster.bootstrap_servers, "client.id": name, "compression.type": "lz4"}
    )
    producer.list_topics(timeout=10)
    until(lambda: kgctl("clients", "describe", name).exit_code == 0)
    rows = until(lambda: [row for row in kgctl.rows("clients", "describe", name) if row["metric"]])
    assert {row["client_id"] for row in rows} == {name}
    found = {row["metric"]: row for row in rows}
    created = found["org.apache.kafka.producer.connection.creation.total"]
    assert (created["kind"], created["labels"], created["is_delta"]) == ("sum", {}, False)
    instance = created["client_instance_id"]
    (listed,) = [row for row in kgctl.rows("clients", "list", "--client-id", name) if row["client_instance_id"]]
    assert listed["client_instance_id"] == instance
    few = kgctl("clients", "describe", instance, "--metric", "org.apache.kafka.producer.connection.").stdout
    assert few.splitlines()[0].split() == ["CLIENT-ID", "METRIC", "TYPE", "VALUE"]
    assert {line.split()[1].rpartition(".")[0] for line in few.splitlines()[1:]} == {
        "org.apache.kafka.producer.connection.creation"
    }


def test_a_client_without_a_subscription_is_named(our_cluster: Cluster) -> None:
    kgctl, name, other = Kgctl(our_cluster.bootstrap_servers), fresh("app"), fresh("other")
    subscribed = ("metrics=*", f"match=client_id={other}")
    assert kgctl("configs", "set", "client-metrics", other, *subscribed, "--execute").exit_code == 0
    producer = Producer({"bootstrap.servers": our_cluster.bootstrap_servers, "client.id": name})
    producer.list_topics(timeout=10)
    shown = until(lambda: found if (found := kgctl("clients", "describe", name)).exit_code == 0 else None)
    assert "No client-metrics config matches 1 of the clients" in shown.stderr
    missing = kgctl("clients", "describe", fresh("nobody"))
    assert missing.exit_code == 5
    assert "has asked which metrics it should send" in missing.stderr
