"""Records in transactions: send values, and read what an isolation level shows."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from tests.clients.adapters import Client, Record, TransactionalProducer
from tests.clients.records import read
from tests.harness.clusters import Cluster

PARTITIONS = 3
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


def send(producer: TransactionalProducer, topic: str, sent: Sequence[str]) -> None:
    """Send the values to the partitions in turn, and wait for all acknowledgements."""
    futures = [producer.send(topic, v.encode(), partition=n % PARTITIONS) for n, v in enumerate(sent)]
    producer.flush(20)
    for future in futures:
        future.result(10)


def read_until(client: Client, cluster: Cluster, topic: str, isolation: str, last: set[str]) -> list[str]:
    """All values of a topic, in the order of partition and offset, once these values were read."""
    received: list[Record] = []
    with contextlib.closing(client.reader(cluster.bootstrap_servers, topic, range(PARTITIONS), isolation)) as reader:
        while not last <= set(texts(received)):
            received += read(reader, 1)
    return texts(received)


def texts(records: list[Record]) -> list[str]:
    return [(r.value or b"").decode() for r in sorted(records, key=lambda r: (r.partition, r.offset))]
