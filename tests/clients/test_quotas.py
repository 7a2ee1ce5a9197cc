"""Clients that exceed a quota are slowed down and report it; all their records arrive."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from tests.clients.adapters import librdkafka
from tests.clients.records import make_topic
from tests.harness.clusters import Cluster, fresh
from tests.harness.running import until
from tests.harness.wire_client import WireClient

# Ten seconds' worth may be used at once; a little more is throttled for half a second or so.
RATE = 10_000
VALUES = [b"x" * 1000] * 106


@pytest.fixture
def client_id(cluster: Cluster) -> str:
    """A client id that may produce and consume RATE bytes per second."""
    name = fresh("slow")
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    entity = [AlterClientQuotasRequest.Entity(entity_type="client-id", entity_name=name)]
    ops = [AlterClientQuotasRequest.Op(key=f"{kind}_byte_rate", value=RATE) for kind in ("producer", "consumer")]
    with WireClient((host, int(port))) as client:
        entry = AlterClientQuotasRequest.Entry(entity=entity, ops=ops)
        assert client.ask(AlterClientQuotasRequest(entries=[entry])).entries[0].error_code == 0
    return name


def test_librdkafka_reports_the_throttle_time(cluster: Cluster, client_id: str) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    topic = make_topic(librdkafka, cluster, 1)
    throttled: list[Any] = []
    common = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "client.id": client_id,
        "throttle_cb": throttled.append,
    }
    producer = confluent.Producer(common)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(20) == 0
    until(lambda: producer.poll(0.1) >= 0 and any(event.throttle_time > 0 for event in throttled))

    throttled.clear()
    consumer = confluent.Consumer(common | {"group.id": fresh("slow")})
    with contextlib.closing(consumer):
        consumer.assign([confluent.TopicPartition(topic, 0, 0)])
        received: list[Any] = []

        def read_on() -> bool:
            received.extend(consumer.consume(len(VALUES), 0.1))
            return len(received) >= len(VALUES)

        until(read_on, 20)
        until(lambda: consumer.poll(0.1) is None and any(event.throttle_time > 0 for event in throttled))
    assert [message.value() for message in received] == VALUES


def test_kafka_python_reports_the_throttle_time(
    cluster: Cluster, client_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = pytest.importorskip("kafka")
    topic = make_topic(librdkafka, cluster, 1)
    with contextlib.closing(
        kafka.KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, client_id=client_id, linger_ms=50)
    ) as producer:
        sent = [producer.send(topic, value) for value in VALUES]
        producer.flush(20)
        assert [future.get(10).offset for future in sent] == list(range(len(VALUES)))
    assert "ProduceResponse throttled by broker" in caplog.text
