"""Reads ranges of a partition from a running broker: completely, or with an error that names the loss."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from typing import Any

import pytest

from broker.local import LocalBroker
from broker.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net import bootstrap
from kgctl.client.net.cluster import Ask
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.schemas.sources import RAW_NAMES
from kgctl.pipelines.source.losses import DataLoss
from kgctl.pipelines.source.ranges import OffsetRange
from kgctl.pipelines.source.reading import Patience, ReadTask, read_range
from kgctl.pipelines.source.tasks import read_task
from tests.harness.commandline import Kgctl
from tests.harness.ports import kept_address
from tests.kgctl.pipelines.source.topics import Topics

SOON = Patience(outage=20.0, missing_topic=0.5, no_progress=0.5)


def task(topics: Topics, topic: str, start: int, end: int, partition: int = 0, **settings: Any) -> ReadTask:
    fetch = settings.pop("fetch", FetchOptions(max_wait_ms=50))
    place = OffsetRange(TopicPartition(topic, partition), start, end)
    return ReadTask(
        ConnectionSettings(bootstrap.parse(topics.bootstrap_servers)), place, fetch, patience=SOON, **settings
    )


def read(one: ReadTask) -> list[dict[str, Any]]:
    """The rows of a task that was pickled, as Spark does."""
    return [row for made in read_task(pickle.loads(pickle.dumps(one))) for row in made.to_pylist()]


def offsets(one: ReadTask) -> list[int]:
    return [row["offset"] for row in read(one)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_is_read_once_with_any_codec(topics: Topics, codec: str) -> None:
    name = topics.make()
    topics.count(name, 3000, **{"compression.type": codec, "batch.num.messages": 100})
    small = FetchOptions(max_wait_ms=50, max_partition_bytes=5000)
    rows = read(task(topics, name, 0, 3000, fetch=small))
    assert [(row["offset"], row["value"]) for row in rows] == [(n, str(n).encode()) for n in range(3000)]
    assert offsets(task(topics, name, 1234, 1301)) == list(range(1234, 1301))


def test_keys_headers_and_times_are_as_written(topics: Topics) -> None:
    name = topics.make()
    topics.fill(
        name,
        [
            {"key": b"k", "value": None, "timestamp": 1_700_000_000_123, "headers": [("ä", b"1"), ("n", None)]},
            {"key": None, "value": b"", "timestamp": 1_700_000_000_000},
        ],
    )
    first, second = read(task(topics, name, 0, 2, columns=(*RAW_NAMES, "headers")))
    assert (first["key"], first["value"], first["timestampType"]) == (b"k", None, 0)
    assert first["timestamp"].timestamp() == 1_700_000_000.123
    assert first["headers"] == [{"key": "ä", "value": b"1"}, {"key": "n", "value": None}]
    assert (second["key"], second["value"], second["headers"]) == (None, b"", None)


def test_a_broker_that_throttles_the_reader_loses_no_records(topics: Topics) -> None:
    name, count = topics.make(), 320
    topics.fill(name, [{"value": b"x" * 1000} for _ in range(count)], **{"batch.num.messages": 10})
    quota = ("quotas", "set", "--client-id", "throttled", "consumer_byte_rate=30500", "--execute", "--no-journal")
    assert (done := Kgctl(topics.bootstrap_servers)(*quota)).exit_code == 0, done.output
    one = task(topics, name, 0, count, fetch=FetchOptions(max_wait_ms=50, max_partition_bytes=50_000))
    assert offsets(replace(one, connection=replace(one.connection, client_id="throttled"))) == list(range(count))


def test_log_append_time_is_marked(topics: Topics) -> None:
    name = topics.make(message_timestamp_type="LogAppendTime")
    topics.fill(name, [{"value": b"x", "timestamp": 1000}])
    (row,) = read(task(topics, name, 0, 1))
    assert row["timestampType"] == 1
    assert row["timestamp"].year > 2000


def delete_records(topics: Topics, partition: TopicPartition, before: int) -> None:
    row = DeleteRecordsRequest.Partition(partition_index=partition.partition, offset=before)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.Topic(name=partition.topic, partitions=[row])], timeout_ms=10_000
    )
    with topics.admin() as admin:
        admin.run(admin.cluster.ask(Ask(admin.cluster.bootstrap[0], request, DeleteRecordsResponse)))


def test_records_deleted_before_the_read_are_data_loss(topics: Topics) -> None:
    name = topics.make()
    topics.count(name, 10)
    delete_records(topics, TopicPartition(name, 0), 4)
    wanted = task(topics, name, 1, 10)
    with pytest.raises(DataLoss, match=rf"{name}-0: offsets 1 to 3 are gone, the log begins at 4.*failOnDataLoss"):
        read(wanted)
    assert offsets(replace(wanted, fail_on_data_loss=False)) == [4, 5, 6, 7, 8, 9]
    behind = replace(wanted, range=OffsetRange(TopicPartition(name, 0), 0, 3), fail_on_data_loss=False)
    assert offsets(behind) == []


def test_a_range_beyond_the_end_of_the_log_is_data_loss(topics: Topics) -> None:
    name = topics.make()
    topics.count(name, 10)
    wanted = task(topics, name, 5, 20)
    with pytest.raises(DataLoss, match=f"{name}-0: there is no offset 19, the log ends before 10"):
        read(wanted)
    assert offsets(replace(wanted, fail_on_data_loss=False)) == [5, 6, 7, 8, 9]
    beyond = task(topics, name, 15, 20)
    with pytest.raises(DataLoss, match="there is no offset 19"):
        read(beyond)
    assert offsets(replace(beyond, fail_on_data_loss=False)) == []


def test_a_topic_deleted_during_the_read_is_data_loss(topics: Topics) -> None:
    name = topics.make()
    topics.count(name, 5000, **{"batch.num.messages": 50})
    wanted = task(topics, name, 0, 5000, fetch=FetchOptions(max_wait_ms=50, max_partition_bytes=1000))
    answers = read_range(wanted)
    next(answers)
    topics.delete(name)
    with pytest.raises(DataLoss, match=f"{name}-0 no longer exists"):
        list(answers)
    assert offsets(replace(wanted, fail_on_data_loss=False)) == []


def test_a_topic_that_is_created_again_during_the_read_is_data_loss(topics: Topics) -> None:
    name = topics.make()
    topics.count(name, 5000, **{"batch.num.messages": 50})
    wanted = task(topics, name, 0, 5000, fetch=FetchOptions(max_wait_ms=50, max_partition_bytes=1000))
    answers, tolerant = read_range(wanted), read_range(replace(wanted, fail_on_data_loss=False))
    next(answers)
    next(tolerant)
    topics.delete(name)
    topics.make(name=name)
    topics.count(name, 5000)
    with pytest.raises(DataLoss, match=f"{name}-0 no longer exists"):
        list(answers)
    assert sum(len(batch.records) for one in tolerant for batch in one.batches()) < 4950


def test_a_partition_that_the_topic_does_not_have_is_data_loss(topics: Topics) -> None:
    name = topics.make()
    topics.count(name, 10)
    with pytest.raises(DataLoss, match=f"{name}-7 no longer exists"):
        read(task(topics, name, 0, 10, partition=7))


def test_a_read_continues_after_a_restart_of_the_broker() -> None:
    with LocalBroker(listen=kept_address()) as kafka:
        topics = Topics(kafka.bootstrap_servers)
        name = topics.make()
        topics.count(name, 5000, **{"batch.num.messages": 50})
        wanted = task(topics, name, 0, 5000, fetch=FetchOptions(max_wait_ms=50, max_partition_bytes=1000))
        answers = read_range(wanted)
        came = [next(answers)]
        kafka.kill()
        back = threading.Timer(0.5, kafka.start)
        back.start()
        came += answers
        back.join()
        assert [record.offset for one in came for batch in one.batches() for record in batch.records] == list(
            range(5000)
        )


def test_a_read_fails_if_the_broker_stays_away() -> None:
    with LocalBroker(listen=kept_address()) as kafka:
        topics = Topics(kafka.bootstrap_servers)
        name = topics.make()
        topics.count(name, 5000, **{"batch.num.messages": 50})
        wanted = task(topics, name, 0, 5000, fetch=FetchOptions(max_wait_ms=50, max_partition_bytes=1000))
        answers = read_range(replace(wanted, patience=Patience(outage=0.5)))
        next(answers)
        kafka.kill()
        with pytest.raises(KgctlError, match=r"nothing listens there|the other side closed the connection"):
            list(answers)
