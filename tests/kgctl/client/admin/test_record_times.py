"""When records were written, on a running broker."""

from __future__ import annotations

import pytest

from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from broker.protocol.record_batch import Record, build_batch
from kgctl.client.admin.admin import Admin
from kgctl.client.admin.record_times import FETCH, record_times
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.cluster import Ask, Batch, Node
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import BrokerError
from kgctl.model.topic_partition import TopicPartition
from tests.harness.clusters import Cluster

FIRST_MS = 1_700_000_000_000


@pytest.fixture
def admin(cluster: Cluster) -> Admin:
    return Admin(ConnectionSettings(parse(cluster.bootstrap_servers), timeout=20))


def test_the_time_is_that_of_the_first_record_at_or_after_the_offset(admin: Admin) -> None:
    with admin:
        topic = _topic(admin, "times", 2)
        _append(admin, topic, 0, [_record(FIRST_MS + n) for n in range(5)])
        _append(admin, topic, 0, [_record(FIRST_MS + 1000)])
        _append(admin, topic, 1, [_record(FIRST_MS + 7)])
        wanted = [(topic, 0, 0), (topic, 0, 3), (topic, 0, 5), (topic, 1, 0)]
        found = admin.run(record_times(admin.cluster, wanted))
    assert found == dict(zip(wanted, (FIRST_MS, FIRST_MS + 3, FIRST_MS + 1000, FIRST_MS + 7), strict=True))


def test_an_offset_at_the_end_of_the_log_or_of_no_partition_has_no_time(admin: Admin) -> None:
    with admin:
        topic = _topic(admin, "times-end", 1)
        _append(admin, topic, 0, [_record(FIRST_MS)])
        wanted = [(topic, 0, 0), (topic, 0, 1), (topic, 0, 99), (topic, 7, 0)]
        found = admin.run(record_times(admin.cluster, wanted))
    assert found == dict(zip(wanted, (FIRST_MS, None, None, None), strict=True))


def test_batches_larger_than_a_share_of_the_response_are_fetched_alone(admin: Admin) -> None:
    large = 3 * FETCH.max_partition_bytes
    with admin:
        topic = _topic(admin, "times-large", 4)
        for number in range(4):
            _append(admin, topic, number, [_record(FIRST_MS + number, large), _record(FIRST_MS + 100 + number, large)])
        wanted = [(topic, number, 1) for number in range(4)]
        found = admin.run(record_times(admin.cluster, wanted))
    assert found == {one: FIRST_MS + 100 + one[1] for one in wanted}


def _topic(admin: Admin, name: str, partitions: int) -> str:
    (made,) = admin.create_topics([name], partitions=partitions, configs={"retention.ms": "-1"})
    assert made.error is None, made.error
    return name


def _record(timestamp_ms: int, size: int = 10) -> Record:
    return Record(0, timestamp_ms, None, b"v" * size)


def _append(admin: Admin, topic: str, number: int, records: list[Record]) -> None:
    partition = TopicPartition(topic, number)
    batch = build_batch([record._replace(offset=n) for n, record in enumerate(records)])
    row = ProduceRequest.Partition(index=number, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=5000, topic_data=[ProduceRequest.Topic(name=topic, partition_data=[row])]
    )

    def read(answer: ProduceResponse) -> dict[TopicPartition, BrokerError | None]:
        code = answer.responses[0].partition_responses[0].error_code
        return {partition: BrokerError(code, topic, by_leader=True) if code else None}

    def make(node: Node, keys: list[TopicPartition]) -> list[Batch[TopicPartition]]:
        return [Batch(Ask(node.endpoint, request, ProduceResponse, max_version=12), keys, read)]

    assert admin.run(admin.cluster.at_leaders([partition], make)) == {partition: None}
