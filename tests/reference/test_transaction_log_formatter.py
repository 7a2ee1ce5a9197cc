"""Kafka's formatter prints the same for `__transaction_state` of our broker and of a Kafka with the same transactions."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka as ck
import pytest

from broker.protocol.transaction_log import TOPIC, partition_for
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.java_tools import Java
from tests.harness.reference_kafka import KafkaTools

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
# The field of producers that know transaction.version 2.
BY_VERSION_2 = {"clientTransactionVersion": 2}


@pytest.fixture
def java(tools: KafkaTools, cluster: Cluster) -> Java:
    return Java(tools, cluster)


def test_the_formatter_prints_the_transactions_of_librdkafka(cluster: Cluster, java: Java) -> None:
    began_ms, topic, transactional_id = time.time_ns() // 1_000_000, new_topic(cluster, 2), fresh("formatted")
    producer = ck.Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": transactional_id})
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(topic, b"value", partition=1)
        producer.flush(30)
        end(30)

    written = {"topic": topic, "partitionIds": [1]}
    assert formatted(java, transactional_id, began_ms) == [
        row(EMPTY, None),
        row(ONGOING, [written]),
        row(PREPARE_COMMIT, [written]),
        row(COMPLETE_COMMIT, []),
        row(ONGOING, [written]),
        row(PREPARE_ABORT, [written]),
        row(COMPLETE_ABORT, []),
    ]


def test_the_formatter_prints_the_transaction_of_a_java_producer(cluster: Cluster, java: Java) -> None:
    began_ms, topic, transactional_id = time.time_ns() // 1_000_000, new_topic(cluster), fresh("formatted")
    java.tools.run(
        "producer-perf-test",
        *("--topic", topic, "--num-records", 1, "--record-size", 10, "--throughput", -1),
        *("--transactional-id", transactional_id, "--producer-props", f"bootstrap.servers={java.bootstrap}"),
    )

    written = {"topic": topic, "partitionIds": [0]}
    assert formatted(java, transactional_id, began_ms) == [
        row(EMPTY, None),
        row(ONGOING, [written]) | BY_VERSION_2,
        row(PREPARE_COMMIT, [written], producer_epoch=1) | BY_VERSION_2,
        row(COMPLETE_COMMIT, [], producer_epoch=1) | BY_VERSION_2,
    ]


def new_topic(cluster: Cluster, partitions: int = 1) -> str:
    topic = fresh("formatted")
    assert Kgctl(cluster.bootstrap_servers)("topics", "create", topic, "--partitions", partitions).exit_code == 0
    return topic


def row(status: int, partitions: list[dict[str, Any]] | None, *, producer_epoch: int = 0) -> dict[str, Any]:
    """The fields that are the same in each run."""
    return {
        "producerEpoch": producer_epoch,
        "transactionTimeoutMs": 60_000,
        "transactionStatus": status,
        "transactionPartitions": partitions,
    }


def formatted(java: Java, transactional_id: str, began_ms: int) -> list[dict[str, Any]]:
    """What Kafka's formatter prints for a transactional id, without the producer id and the times, which it checks."""
    rows, producer_ids, updated_ms = [], set(), began_ms - 1
    for line in java.formatted("TransactionLog", TOPIC, partition_for(transactional_id)):
        if line["key"]["data"]["transactionalId"] != transactional_id:
            continue
        assert (line["key"]["type"], line["value"]["version"]) == (0, 1)
        value = line["value"]["data"]
        producer_ids.add(value.pop("producerId"))
        earlier_ms, updated_ms = updated_ms, value.pop("transactionLastUpdateTimestampMs")
        assert earlier_ms <= updated_ms <= time.time_ns() // 1_000_000 + 1
        started_ms = value.pop("transactionStartTimestampMs")
        assert started_ms == -1 if value["transactionStatus"] == EMPTY else began_ms - 1 <= started_ms <= updated_ms
        rows.append(value)
    assert len(producer_ids) == 1
    return rows
