"""The engine with several brokers: librdkafka's mock cluster, and brokers that stop and return."""

from __future__ import annotations

import random
from pathlib import Path

from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kgctl.client.engine.engine import now_ms
from kgctl.client.net.bootstrap import parse
from kgctl.client.network.coordinator import GROUP, Coordinator
from kgctl.model.topic_partition import TopicPartition
from tests.harness.mock_cluster import mock_cluster
from tests.harness.ports import kept_address
from tests.harness.running import RunningBroker
from tests.kgctl.client.engine.asking import SECONDS, Asking, asking


def test_a_client_finds_leaders_and_coordinators_on_several_brokers() -> None:
    with mock_cluster(3) as cluster, asking(*parse(cluster.bootstrap_servers)[:1]) as client:
        cluster.create("orders", 6)
        want(client, "orders")
        metadata = client.network.metadata
        leaders = {
            one.node.node_id for number in range(6) if (one := metadata.leader(TopicPartition("orders", number)))
        }
        assert leaders == {1, 2, 3}
        assert {node.endpoint for node in metadata.nodes().values()} == set(parse(cluster.bootstrap_servers))
        for number in (1, 2, 3):
            ready_within(client, number)
        found = {coordinator_of(client, f"group{number}") for number in range(9)}
        assert found <= {(1 << 31) - 1 - number for number in (1, 2, 3)}


def test_a_client_asks_the_nodes_that_are_left() -> None:
    with mock_cluster(3) as cluster, asking(*parse(cluster.bootstrap_servers)) as client:
        want(client, "orders")
        for stopped in (1, 2, 3):
            ready_within(client, stopped)
            cluster.stop(stopped)
            assert client.engine.wait(lambda node=stopped: client.network.error_of(node) is not None, SECONDS)  # type: ignore[misc]
            with client.engine.lock:
                wanted = client.network.metadata.request_update()
            assert client.engine.wait(lambda version=wanted: client.network.metadata.version >= version, SECONDS)  # type: ignore[misc]
            cluster.start(stopped)


def test_a_new_leader_is_found() -> None:
    with mock_cluster(3) as cluster, asking(*parse(cluster.bootstrap_servers)) as client:
        cluster.create("orders", 1)
        cluster.lead("orders", 0, 1)
        want(client, "orders")
        cluster.lead("orders", 0, 3)
        with client.engine.lock:
            client.network.metadata.request_update()
        assert client.engine.wait(lambda: leader_of(client) == 3, SECONDS)


def leader_of(client: Asking) -> int:
    found = client.network.metadata.leader(TopicPartition("orders", 0))
    return -1 if found is None else found.node.node_id


def want(client: Asking, topic: str) -> None:
    with client.engine.lock:
        client.network.metadata.want([topic])
    assert client.engine.wait(lambda: bool(client.network.metadata.partition_count(topic)), SECONDS)


def ready_within(client: Asking, node_id: int) -> None:
    def is_ready() -> bool:
        return client.network.is_ready(node_id, now_ms())

    assert client.engine.wait(is_ready, SECONDS)


def coordinator_of(client: Asking, group: str) -> int | None:
    coordinator = Coordinator(client.network, group, GROUP, random.Random(1))
    with client.engine.lock:
        coordinator.seek(now_ms())
    assert client.engine.wait(lambda: coordinator.node_id is not None, SECONDS)
    return coordinator.node_id


def test_a_client_finds_its_only_broker_again_after_a_restart(tmp_path: Path) -> None:
    address = kept_address()
    with RunningBroker(tmp_path, listeners=f"PLAINTEXT://{address}") as broker, asking(*parse(address)) as client:
        client.ask(ListGroupsRequest(), ListGroupsResponse)
        broker.stop()
        assert client.engine.wait(lambda: client.network.error_of(1) is not None, SECONDS)
        broker.start()
        client.ask(ListGroupsRequest(), ListGroupsResponse)
