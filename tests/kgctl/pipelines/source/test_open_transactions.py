"""Committed readers that start or end behind the beginning of an open transaction: nothing is lost, and nothing is read twice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from pyspark.sql.streaming.datasource import ReadAllAvailable

from kgctl.client.admin.offsets import LATEST
from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.source.losses import DataLoss
from kgctl.pipelines.source.option_names import BadOption
from kgctl.pipelines.source.options import read_options
from kgctl.pipelines.source.planning import plan_batch, take_snapshot, to_tasks
from kgctl.pipelines.source.streaming import KgctlStreamReader
from kgctl.pipelines.source.tasks import read_task
from tests.kgctl.pipelines.source.topics import Topics

# Three records, then two of a transaction that is open.
STABLE, END = 3, 5


@pytest.fixture
def topic(topics: Topics) -> Iterator[tuple[str, Producer]]:
    name = topics.make()
    topics.count(name, STABLE)
    producer = Producer({"bootstrap.servers": topics.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    for _ in range(END - STABLE):
        producer.produce(name, b"open", partition=0)
    producer.flush(20)
    yield name, producer
    producer.abort_transaction(20)


def options(topics: Topics, name: str, **more: str) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": topics.bootstrap_servers, "subscribe": name}
    return given | {"kafka.isolation.level": "read_committed"} | more


def at(name: str, offset: int) -> str:
    return json.dumps({name: {"0": offset}})


def batch(topics: Topics, name: str, **more: str) -> list[int]:
    read = read_options(options(topics, name, **more))
    tasks = to_tasks(plan_batch(read, take_snapshot(read)), read)
    return [offset for task in tasks for made in read_task(task) for offset in made["offset"].to_pylist()]


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_batch_that_starts_behind_the_beginning_of_a_transaction_is_empty(
    topics: Topics, topic: tuple[str, Producer], fails: str
) -> None:
    name, _ = topic
    assert batch(topics, name) == [0, 1, 2]
    for start in (STABLE, STABLE + 1, END):
        assert batch(topics, name, startingOffsets=at(name, start), failOnDataLoss=fails) == []
        for ending in ({"endingOffsets": at(name, LATEST)}, {"endingTimestamp": str(10**14)}):
            assert batch(topics, name, startingOffsets=at(name, start), failOnDataLoss=fails, **ending) == []
    with pytest.raises(BadOption, match="start at offset 4 and end before 3"):
        batch(topics, name, startingOffsets=at(name, STABLE + 1), endingOffsets=at(name, STABLE))
    with pytest.raises(DataLoss, match="there is no offset 5"):
        batch(topics, name, startingOffsets=at(name, END + 1))


def test_a_batch_cannot_end_behind_the_beginning_of_a_transaction(topics: Topics, topic: tuple[str, Producer]) -> None:
    name, _ = topic
    assert batch(topics, name, endingOffsets=at(name, STABLE)) == [0, 1, 2]
    with pytest.raises(KgctlError, match="before 4, but a transaction is open from offset 3 on"):
        batch(topics, name, endingOffsets=at(name, STABLE + 1))


def test_a_stream_that_starts_in_a_transaction_waits_for_its_end(topics: Topics, topic: tuple[str, Producer]) -> None:
    name, producer = topic
    reader = KgctlStreamReader(read_options(options(topics, name, startingOffsets=at(name, STABLE + 1))))
    start = {name: {"0": STABLE + 1}}
    assert reader.initialOffset() == start
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    producer.commit_transaction(20)
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {name: {"0": END + 1}}  # with the marker
    (part,) = reader.partitions(start, end)
    assert [offset for made in reader.read(part) for offset in made["offset"].to_pylist()] == [STABLE + 1]
    reader.stop()
    producer.begin_transaction()
