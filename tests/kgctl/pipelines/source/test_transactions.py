"""Transactions on a real Kafka: an open one ends the log for committed readers, an aborted one is not read."""

from __future__ import annotations

import pytest

from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.model.topic_partition import TopicPartition
from tests.kgctl.pipelines.source.test_log_ends import ends_of
from tests.kgctl.pipelines.source.test_reading import offsets, task
from tests.kgctl.pipelines.source.topics import Topics

pytestmark = [pytest.mark.reference, pytest.mark.timeout(300)]


def test_committed_readers_end_before_an_open_transaction(kafka_topics: Topics) -> None:
    from confluent_kafka import Producer

    name = kafka_topics.make()
    kafka_topics.count(name, 3)
    producer = Producer({"bootstrap.servers": kafka_topics.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(name, b"open", partition=0)
    producer.flush(20)
    zero = TopicPartition(name, 0)
    assert ends_of(kafka_topics, subscribe=name)[1] == {zero: 4}
    assert ends_of(kafka_topics, subscribe=name, **{"kafka.isolation.level": "read_committed"})[1] == {zero: 3}
    producer.abort_transaction(20)


def test_only_uncommitted_readers_read_aborted_transactions(kafka_topics: Topics) -> None:
    from confluent_kafka import Producer

    name = kafka_topics.make()
    producer = Producer({"bootstrap.servers": kafka_topics.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(20)
    for number, end in enumerate(
        (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    ):
        producer.begin_transaction()
        for _ in range(2):
            producer.produce(name, str(number).encode(), partition=0)
        producer.flush(20)
        end(20)
    # Two records and a marker each.
    assert offsets(task(kafka_topics, name, 0, 9)) == [0, 1, 3, 4, 6, 7]
    committed = FetchOptions(max_wait_ms=50, committed_only=True)
    assert offsets(task(kafka_topics, name, 0, 9, fetch=committed)) == [0, 1, 6, 7]
    assert offsets(task(kafka_topics, name, 4, 8, fetch=committed)) == [6, 7]
