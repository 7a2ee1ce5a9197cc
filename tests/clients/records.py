"""Topics and records of scenarios: create a topic, produce values, read records."""

from __future__ import annotations

import contextlib
import time

from tests.clients.adapters import Client, Consumer, Place, Record
from tests.harness.clusters import Cluster, fresh


def make_topic(client: Client, cluster: Cluster, partitions: int, stem: str = "records") -> str:
    topic = fresh(stem)
    with contextlib.closing(client.admin(cluster.bootstrap_servers)) as admin:
        admin.create_topic(topic, partitions)
    return topic


def values(stem: str, count: int) -> list[str]:
    return [f"{stem}-{n}" for n in range(count)]


def produce(client: Client, cluster: Cluster, topic: str, values: list[str], partitions: int) -> list[Place]:
    """Send the values to the partitions in turn, and wait for all acknowledgements."""
    with contextlib.closing(client.producer(cluster.bootstrap_servers)) as producer:
        futures = [producer.send(topic, v.encode(), partition=n % partitions) for n, v in enumerate(values)]
        producer.flush(20)
        return [future.result(10) for future in futures]


def read(consumer: Consumer, count: int, within_s: float = 20) -> list[Record]:
    """The next records, at least `count`."""
    records: list[Record] = []
    deadline = time.monotonic() + within_s
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records within {within_s} s"
        records += consumer.poll(0.2)
    return records
