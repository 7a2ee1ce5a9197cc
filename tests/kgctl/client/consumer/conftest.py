"""Topics with records that librdkafka wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.harness.clusters import Cluster, fresh

Write = Callable[..., str]


@pytest.fixture
def write(cluster: Cluster) -> Write:
    """Makes a topic with values in turn on its partitions, and returns its name."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    from confluent_kafka.admin import AdminClient, NewTopic

    def topic_of(values: Iterable[bytes | None] = (), partitions: int = 1, **options: object) -> str:
        name = fresh("topic")
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic(name, partitions)])[name].result(10)
        append(name, values, partitions, **options)
        return name

    def append(name: str, values: Iterable[bytes | None], partitions: int = 1, **options: object) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, **options})
        for number, value in enumerate(values):
            producer.produce(name, value, partition=number % partitions)
        assert producer.flush(10) == 0

    topic_of.append = append  # type: ignore[attr-defined]
    return topic_of
