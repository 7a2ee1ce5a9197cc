"""Records are read back as they were sent, with every client and compression."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import Future

import pytest

from tests.clients.adapters import CODECS, Client, Place, Record
from tests.clients.records import make_topic, read
from tests.harness.clusters import Cluster, fresh

PARTITIONS = 3
RECORDS = 120
# Older records could be removed by retention before they are read.
SENT_MS = int(time.time() * 1000) - 3_600_000


@pytest.fixture
def sent_by_codec(cluster: Cluster, client: Client, codec: str) -> tuple[str, dict[Place, Record]]:
    if codec in {"snappy", "lz4", "zstd"} and client.__name__.endswith("kafka_python"):  # type: ignore[attr-defined]
        pytest.importorskip({"zstd": "zstandard", "lz4": "lz4.frame"}.get(codec, codec))
    topic = make_topic(client, cluster, PARTITIONS)
    sent: list[tuple[Future[Place], Record]] = []
    with contextlib.closing(client.producer(cluster.bootstrap_servers, codec)) as producer:
        for n in range(RECORDS):
            record = Record(
                partition=n % PARTITIONS,
                offset=-1,
                key=None if n % 7 == 0 else f"key-{n % 10}".encode(),
                value=f"value {n} ".encode() * 40,
                headers=() if n % 5 == 0 else (("trace", str(n).encode()), ("trace", b""), ("ünï", b"\x00\xff")),
                timestamp_ms=SENT_MS + n,
            )
            future = producer.send(
                topic,
                record.value,
                key=record.key,
                partition=record.partition,
                headers=record.headers,
                timestamp_ms=record.timestamp_ms,
            )
            sent.append((future, record))
        producer.flush(20)
        placed = {future.result(10): record for future, record in sent}
    return topic, placed


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_back_as_they_were_sent(
    cluster: Cluster, client: Client, sent_by_codec: tuple[str, dict[Place, Record]]
) -> None:
    topic, placed = sent_by_codec
    assert {p: sorted(o.offset for o in placed if o.partition == p) for p in range(PARTITIONS)} == {
        p: list(range(RECORDS // PARTITIONS)) for p in range(PARTITIONS)
    }
    with contextlib.closing(client.reader(cluster.bootstrap_servers, topic, range(PARTITIONS))) as consumer:
        received = read(consumer, RECORDS)
    assert len(received) == RECORDS
    for record in received:
        assert record == Record(
            record.partition,
            record.offset,
            *(
                getattr(placed[Place(record.partition, record.offset)], name)
                for name in ("key", "value", "headers", "timestamp_ms")
            ),
        )


def test_a_record_without_a_value_is_a_tombstone(cluster: Cluster, client: Client) -> None:
    topic = make_topic(client, cluster, 1)
    with contextlib.closing(client.producer(cluster.bootstrap_servers)) as producer:
        futures = [producer.send(topic, value, key=b"k", partition=0) for value in (b"", None)]
        producer.flush(20)
        assert [future.result(10) for future in futures] == [Place(0, 0), Place(0, 1)]
    with contextlib.closing(client.reader(cluster.bootstrap_servers, topic, [0])) as consumer:
        assert [(r.key, r.value) for r in read(consumer, 2)] == [(b"k", b""), (b"k", None)]


def test_a_topic_created_by_its_first_record_is_available_immediately(cluster: Cluster, client: Client) -> None:
    topic = fresh("made-on-demand")
    with contextlib.closing(client.producer(cluster.bootstrap_servers)) as producer:
        future = producer.send(topic, b"first", partition=0)
        producer.flush(20)
        assert future.result(10) == Place(0, 0)
