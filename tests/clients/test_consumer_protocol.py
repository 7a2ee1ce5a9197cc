"""librdkafka and kgctl with group.protocol=consumer (KIP-848): members share partitions, survive kills, leave and come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.create_topics import CreateTopicsRequest
from tests.clients.adapters import Client, client_named
from tests.clients.group import Group
from tests.clients.records import produce, values
from tests.harness.clusters import fresh
from tests.harness.ports import free_port
from tests.harness.running import RunningBroker

LIBRDKAFKA, OWN = "confluent-kafka", "kgctl"
PARTITIONS = 6
TIMEOUTS = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}


class Served(RunningBroker):
    """The broker with short timeouts, at an address that a restart keeps."""

    def __init__(self, data_dir: Path) -> None:
        self.bootstrap_servers = f"127.0.0.1:{free_port()}"
        super().__init__(data_dir, listeners=f"PLAINTEXT://{self.bootstrap_servers}", **TIMEOUTS)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    pytest.importorskip("confluent_kafka")
    with Served(tmp_path / "data") as broker:
        yield broker


@pytest.fixture
def client() -> Client:
    return client_named(LIBRDKAFKA)


@pytest.fixture
def topic(served: Served) -> str:
    name = fresh("consumer-protocol")
    with served.client() as admin:
        topics = [CreateTopicsRequest.Topic(name=name, num_partitions=PARTITIONS, replication_factor=1)]
        assert not admin.ask(CreateTopicsRequest(topics=topics)).topics[0].error_code
    return name


def epoch_of(served: Served, group: str) -> tuple[str, int]:
    with served.client() as admin:
        (found,) = admin.ask(ConsumerGroupDescribeRequest(group_ids=[group])).groups
    return found.group_state, found.group_epoch


@pytest.mark.parametrize("member", [LIBRDKAFKA, OWN])
def test_three_members_survive_a_kill_and_a_restart_of_the_broker(
    served: Served, topic: str, client: Client, member: str
) -> None:
    name = fresh("three")
    with Group(member, served.bootstrap_servers, name, topic, protocol="consumer") as group:
        _, second, third = group.start(3)
        group.wait_until_shared([2, 2, 2])
        before = values("before", 60)
        produce(client, served, topic, before, PARTITIONS)
        group.wait_until_received(set(before))
        group.wait_until_committed(dict.fromkeys(range(PARTITIONS), 10))
        state, epoch = epoch_of(served, name)
        assert state == "Stable"

        served.restart()
        middle = values("middle", 60)
        produce(client, served, topic, middle, PARTITIONS)
        group.wait_until_received(set(middle))
        group.wait_until_committed(dict.fromkeys(range(PARTITIONS), 20))
        assert epoch_of(served, name) == ("Stable", epoch)

        second.kill()
        group.wait_until_shared([3, 3])
        third.leave()
        group.wait_until_shared([6])
        after = values("after", 60)
        produce(client, served, topic, after, PARTITIONS)
        group.wait_until_received(set(after))
        assert group.received_more_than_once() == []
        assert epoch_of(served, name)[1] > epoch


@pytest.mark.parametrize("member", [LIBRDKAFKA, OWN])
def test_a_static_member_takes_up_its_partitions_again(served: Served, topic: str, member: str) -> None:
    with Group(member, served.bootstrap_servers, fresh("static"), topic, protocol="consumer") as group:
        first, second = group.start_static("one", "two")
        group.wait_until_shared([3, 3])
        owned, kept = set(second.owned), set(first.owned)
        second.leave()
        (again,) = group.start_static("two")
        group.wait_until_shared([3, 3])
        assert (again.owned, first.owned, first.ever_revoked & kept) == (owned, kept, set())


def test_members_of_two_clients_share_a_group(served: Served, topic: str, client: Client) -> None:
    with Group(LIBRDKAFKA, served.bootstrap_servers, fresh("mixed"), topic, protocol="consumer") as group:
        (first,) = group.start(1)
        group.start(2, OWN)
        group.wait_until_shared([2, 2, 2])
        before = values("before", 60)
        produce(client, served, topic, before, PARTITIONS)
        group.wait_until_received(set(before))
        group.wait_until_committed(dict.fromkeys(range(PARTITIONS), 10))
        first.leave()
        group.wait_until_shared([3, 3])
        after = values("after", 60)
        produce(client, served, topic, after, PARTITIONS)
        group.wait_until_received(set(after))
        assert group.received_more_than_once() == []
