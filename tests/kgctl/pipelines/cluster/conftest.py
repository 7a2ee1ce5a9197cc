"""One Spark cluster for all tests here, and the topic that they copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl.client.admin.admin import Admin
from kgctl.client.net import bootstrap
from kgctl.client.net.connector import ConnectionSettings
from tests.kgctl.pipelines.cluster.copying import Copy
from tests.kgctl.pipelines.cluster.standalone import Cluster, standalone

RECORDS, BATCH_ROWS, PARTITIONS = 1_000_000, 100_000, 4
DAY_MS = 86_400_000
FIRST_MS = 1_767_225_600_000


@dataclass(frozen=True, slots=True)
class Topic:
    bootstrap: str
    name: str
    records: int


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone(tmp_path_factory.mktemp("cluster") / "spark") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def million() -> Iterator[Topic]:
    """A topic of a million records with distinct keys, in four partitions, of two days."""
    with LocalBroker() as broker:
        fill(broker.bootstrap_servers, "million", RECORDS)
        yield Topic(broker.bootstrap_servers, "million", RECORDS)


@pytest.fixture
def copy(million: Topic, cluster: Cluster, tmp_path: Path) -> Copy:
    """Copies the million with the cluster into an empty folder."""
    gate = tmp_path / "gate"
    gate.mkdir()
    return Copy(
        million.bootstrap,
        million.name,
        str(tmp_path / "out"),
        cluster.url,
        BATCH_ROWS,
        str(gate),
        conf_for(cluster.scratch),
    )


def conf_for(scratch: Path) -> tuple[tuple[str, str], ...]:
    """Settings for a small machine that runs the whole cluster; temporary files go to `scratch`."""
    flags = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={scratch}"
    return (
        ("spark.driver.host", "127.0.0.1"),
        ("spark.driver.memory", "700m"),
        ("spark.executor.memory", "700m"),
        ("spark.local.dir", str(scratch)),
        ("spark.sql.shuffle.partitions", "2"),
        ("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={scratch}"),
        ("spark.executor.extraJavaOptions", flags),
    )


def fill(bootstrap_servers: str, topic: str, records: int) -> None:
    from confluent_kafka import Producer

    with Admin(ConnectionSettings(bootstrap.parse(bootstrap_servers))) as admin:
        (row,) = admin.create_topics([topic], partitions=PARTITIONS, configs={"retention.ms": "-1"})
        assert row.error is None, row
    failed: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "linger.ms": 50,
            "batch.size": 500_000,
            "queue.buffering.max.messages": 2 * records,
            "on_delivery": lambda error, _: failed.append(error) if error else None,
        }
    )
    for number in range(records):
        producer.produce(
            topic,
            key=b"key-%07d" % number,
            value=b"value of record %07d" % number,
            partition=number % PARTITIONS,
            timestamp=FIRST_MS + number // PARTITIONS % 2 * DAY_MS + number,
        )
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
    assert not failed, failed[:3]
