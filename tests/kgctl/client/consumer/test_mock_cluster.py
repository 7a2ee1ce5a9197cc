"""A consumer on librdkafka's mock cluster: several brokers, moving leaders, injected errors, lost connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kgctl.client.consumer.consumer import Consumer
from kgctl.model.topic_partition import TopicPartition
from tests.kgctl.client.consumer.test_consumer import SECONDS, numbers, read

confluent_kafka = pytest.importorskip("confluent_kafka")
BROKERS, PARTITIONS = 3, 4


@pytest.fixture
def mock() -> Iterator[Any]:
    """A producer of librdkafka, which runs the cluster; `bootstrap` has its addresses."""
    producer = confluent_kafka.Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": BROKERS, "linger.ms": 5})
    producer.list_topics(timeout=10)
    yield producer
    producer.purge()


def addresses(producer: Any) -> str:
    return ",".join(f"{one.host}:{one.port}" for one in producer.list_topics(timeout=10).brokers.values())


def written(producer: Any, topic: str, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(SECONDS) == 0


def test_partitions_of_several_brokers_are_read_and_committed(mock: Any) -> None:
    written(mock, "t", 100)
    options = {"bootstrap_servers": addresses(mock), "auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}
    with Consumer(group_id="g", **options) as consumer:  # type: ignore[arg-type]
        consumer.assign([("t", number) for number in range(PARTITIONS)])
        assert sorted(int(one.value) for one in read(consumer, 100)) == list(range(100))
        leaders = {one.leader for one in consumer.partitions_for("t")}
        assert len(leaders) > 1
        consumer.commit()
        found = consumer.committed([TopicPartition("t", 0)])[TopicPartition("t", 0)]
        assert found is not None
        assert found.offset == 25
        written(mock, "t", 20, first=100)
        assert len(read(consumer, 20)) == 20


def test_records_are_in_order_per_partition_and_come_once(mock: Any) -> None:
    written(mock, "t", 2_000)
    with Consumer(
        bootstrap_servers=addresses(mock),
        auto_offset_reset="earliest",
        fetch_max_bytes=5_000,
        max_partition_fetch_bytes=1_000,
        max_poll_records=33,
    ) as consumer:
        consumer.assign([("t", number) for number in range(PARTITIONS)])
        records = read(consumer, 2_000)
    for partition in range(PARTITIONS):
        values = [one.value for one in records if one.partition == partition]
        assert values == [value for value in numbers(2_000) if int(value) % PARTITIONS == partition]
