"""Topics of every kind on a cluster, and their records as a consumer sees them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgctl.client.net import bootstrap
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.pipelines import ArchiveFindingRow
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.comparing import compare
from kgctl.pipelines.archive.manifest import Archive, read_archive
from kgctl.pipelines.archive.reading import reader
from kgctl.pipelines.archive.run import Read, Reading, run_archive
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.settings import RunSettings
from tests.kgctl.pipelines.archive.making import Row
from tests.kgctl.pipelines.archive.reading import rows_of
from tests.kgctl.pipelines.source.topics import Topics

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from pyspark.sql import SparkSession

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# 2025-12-31 23:59:59.990 UTC: some records are of the next day.
MIDNIGHT_MS = 1_767_225_599_990


def fill(topics: Topics) -> list[str]:
    """Topics with all codecs, headers, nulls, both kinds of timestamps, transactions, and no records."""
    codecs, of_log = topics.make(2, retention_ms="-1"), topics.make(message_timestamp_type="LogAppendTime")
    for at, codec in enumerate(CODECS):
        records: list[dict[str, Any]] = [
            {
                "key": None if number % 5 == 0 else b"key %d" % (number % 7),
                "value": None if number % 6 == 0 else bytes([number, 0, 255]) * (number % 3) * 100,
                "headers": [("name", b"\xff\x00"), ("name", None), ("", b"")][: number % 4],
                "timestamp": MIDNIGHT_MS + number,
                "partition": number % 2,
            }
            for number in range(40)
        ]
        topics.fill(codecs, records, **{"compression.type": codec, "batch.num.messages": 7 + at})
    topics.fill(of_log, [{"value": b"now", "timestamp": MIDNIGHT_MS} for _ in range(5)])
    transactions = topics.make(1)
    transact(topics, transactions, "commit", "abort", "commit", "abort")
    return [codecs, of_log, transactions, topics.make(2)]


def transact(topics: Topics, topic: str, *ends: str) -> None:
    """Three records in each transaction, with a marker behind them."""
    producer = transactional(topics, topic)
    for end in ends:
        producer.begin_transaction()
        for number in range(3):
            producer.produce(topic, f"{end} {number}".encode(), b"k", partition=0)
        producer.flush(20)
        (producer.commit_transaction if end == "commit" else producer.abort_transaction)(20)


def transactional(topics: Topics, name: str) -> Producer:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": topics.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(20)
    return producer


def archive(spark: SparkSession, topics: Topics, out: Path, *names: str, **changes: Any) -> list[Progress]:
    """What `kgctl pipeline archive` does, in the session of the tests."""
    settings = RunSettings((), topics.bootstrap_servers, str(out), archived=names, **changes)
    stop, progress = threading.Event(), list[Progress]()
    run_archive(settings, progress.append, stop, opened(reader(spark, settings, {}, progress.append, stop)))
    return progress


@contextlib.contextmanager
def opened(read: Read) -> Iterator[Reading]:
    yield lambda: read


def against(topics: Topics, archive: Archive) -> list[ArchiveFindingRow]:
    return list(compare(archive, ConnectionSettings(bootstrap.parse(topics.bootstrap_servers))))


def archived(out: Path, *names: str) -> dict[TopicPartition, list[Row]]:
    found = read_archive(out)
    return {one: rows_of(found, one) for one in found.partitions if one.topic in names}


def consumed(topics: Topics, *names: str, isolation_level: str = "read_committed") -> dict[TopicPartition, list[Row]]:
    """The records of each partition as librdkafka delivers them."""
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as Place

    config = {
        "bootstrap.servers": topics.bootstrap_servers,
        "group.id": "truth",
        "enable.auto.commit": False,
        "isolation.level": isolation_level,
        "enable.partition.eof": True,
    }
    consumer = Consumer(config)
    places = [
        TopicPartition(name, number) for name in names for number in consumer.list_topics(name).topics[name].partitions
    ]
    found: dict[TopicPartition, list[Row]] = {one: [] for one in places}
    consumer.assign([Place(*one, 0) for one in places])
    while places:
        message = consumer.poll(20)
        assert message is not None, f"no end of {places}"
        one = TopicPartition(message.topic(), message.partition())
        if message.error() is not None:
            places.remove(one)
            continue
        kind, at_ms = message.timestamp()
        headers = tuple(message.headers() or ())
        found[one].append(Row(message.offset(), message.key(), message.value(), at_ms, headers, kind - 1))
    consumer.close()
    return found
