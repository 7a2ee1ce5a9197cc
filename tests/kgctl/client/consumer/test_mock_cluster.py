"""A consumer on librdkafka's mock cluster: several brokers and racks, moving coordinators, injected errors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.consumer_record import ConsumerRecord
from kgctl.client.net.errors import BrokerError
from kgctl.client.producer.producer import Producer
from kgctl.model.topic_partition import TopicPartition
from tests.harness.clusters import fresh
from tests.harness.mock_cluster import CLOSE_CONNECTION, MockCluster, mock_cluster
from tests.kgctl.client.consumer.test_consumer import SECONDS, numbers, read

PARTITIONS = 4
FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 1, 2, 8, 9, 10
JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 11, 12, 14


@pytest.fixture(scope="module")
def shared() -> Iterator[MockCluster]:
    """Each broker is in a rack of its own."""
    with mock_cluster(2) as cluster:
        for broker in (1, 2):
            cluster.place(broker, f"rack-{broker}")
        yield cluster


@pytest.fixture
def cluster(shared: MockCluster) -> Iterator[MockCluster]:
    yield shared
    shared.clear(FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, SYNC_GROUP)


@pytest.fixture
def topic(shared: MockCluster) -> str:
    """Each partition has one replica. Neither ranges of partitions nor turns of brokers agree with the brokers."""
    name = fresh("topic")
    shared.create(name, PARTITIONS)
    for number, broker in enumerate((1, 2, 2, 1)):
        shared.lead(name, number, broker)
    return name


def partitions_of(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def write(cluster: MockCluster, topic: str, count: int, first: int = 0) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


def consumer_of(cluster: MockCluster, **options: Any) -> Consumer:
    given: dict[str, Any] = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": 50,
        "heartbeat_interval_ms": 50,
        # A mock broker waits this long, less one second, for the members of a group to join again.
        "session_timeout_ms": 1_400,
        "retry_backoff_ms": 10,
    }
    return Consumer(**given | options)


def values(records: list[ConsumerRecord]) -> list[int]:
    return sorted(int(one.value or b"") for one in records)


def poll_until(condition: Callable[[], bool], *consumers: Consumer) -> list[ConsumerRecord]:
    """Poll the consumers in turn. Returns the records."""
    out: list[ConsumerRecord] = []
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        for consumer in consumers:
            out += consumer.poll(0.02)
    return out


def test_partitions_of_several_brokers_are_read_and_committed(cluster: MockCluster, topic: str) -> None:
    write(cluster, topic, 100)
    with consumer_of(cluster, group_id=topic) as consumer:
        consumer.assign(partitions_of(topic))
        assert values(read(consumer, 100)) == list(range(100))
        assert {one.leader for one in consumer.partitions_for(topic)} == {1, 2}
        consumer.commit()
        found = consumer.committed(partitions_of(topic)[:1])[TopicPartition(topic, 0)]
        assert found is not None
        assert found.offset == 25
        write(cluster, topic, 20, first=100)
        assert values(read(consumer, 20)) == list(range(100, 120))


def test_records_are_in_order_per_partition_and_come_once(cluster: MockCluster, topic: str) -> None:
    write(cluster, topic, 2_000)
    with consumer_of(
        cluster, fetch_max_bytes=5_000, max_partition_fetch_bytes=1_000, max_poll_records=33, fetch_max_wait_ms=500
    ) as consumer:
        consumer.assign(partitions_of(topic))
        records = read(consumer, 2_000)
    for partition in range(PARTITIONS):
        found = [one.value for one in records if one.partition == partition]
        assert found == [value for value in numbers(2_000) if int(value) % PARTITIONS == partition]


# --- errors ---


@pytest.mark.parametrize(
    ("api_key", "codes"),
    [
        (FETCH, (ErrorCode.UNKNOWN_SERVER_ERROR, CLOSE_CONNECTION)),
        (LIST_OFFSETS, (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        # The mock's answers with other errors have no host, which the protocol does not allow.
        (FIND_COORDINATOR, (CLOSE_CONNECTION, CLOSE_CONNECTION)),
        (OFFSET_FETCH, (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)),
        (OFFSET_COMMIT, (ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE)),
    ],
)
def test_passing_errors_neither_lose_nor_repeat_records(
    cluster: MockCluster, topic: str, api_key: int, codes: tuple[int, ...]
) -> None:
    write(cluster, topic, 100)
    cluster.fail_next(api_key, *codes)
    read_and_commit(cluster, topic)


def test_passing_errors_of_one_partition_neither_lose_nor_repeat_records(cluster: MockCluster, topic: str) -> None:
    write(cluster, topic, 100)
    codes = (
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID),
        (ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR),
    )
    for partition, rows in enumerate(codes):
        cluster.fail_partition(topic, partition, FETCH, *rows)
    read_and_commit(cluster, topic)


def read_and_commit(cluster: MockCluster, topic: str) -> None:
    with consumer_of(cluster, group_id=topic) as consumer:
        consumer.assign(partitions_of(topic))
        records = read(consumer, 100)
        consumer.commit()
        assert [one and one.offset for one in consumer.committed(partitions_of(topic)).values()] == [25] * PARTITIONS
    assert values(records) == list(range(100))


def test_a_final_error_is_raised_once_and_reading_continues(cluster: MockCluster, topic: str) -> None:
    write(cluster, topic, 100)
    cluster.fail_partition(topic, 0, FETCH, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with consumer_of(cluster) as consumer:
        consumer.assign(partitions_of(topic))
        records: list[ConsumerRecord] = []
        errors: list[str] = []
        while len(records) < 100:
            try:
                records += consumer.poll(1.0)
            except BrokerError as error:
                errors.append(error.name)
    assert errors == ["TOPIC_AUTHORIZATION_FAILED"]
    assert values(records) == list(range(100))


def test_a_leader_that_moves_is_followed(cluster: MockCluster, topic: str) -> None:
    write(cluster, topic, 40)
    with consumer_of(cluster) as consumer:
        consumer.assign(partitions_of(topic))
        records = read(consumer, 40)
        for one in partitions_of(topic):
            cluster.lead(one.topic, one.partition, 1 + one.partition % 2)
        write(cluster, topic, 40, first=40)
        records += read(consumer, 40)
    assert values(records) == list(range(80))


# --- groups ---


def test_two_members_share_the_partitions_and_one_takes_over(cluster: MockCluster, topic: str) -> None:
    write(cluster, topic, 40)
    with ExitStack() as stack:
        one, two = (stack.enter_context(consumer_of(cluster, group_id=topic)) for _ in range(2))
        one.subscribe([topic])
        records = poll_until(lambda: one.assignment() == set(partitions_of(topic)), one)
        records += read(one, 40 - len(records))
        one.commit()
        two.subscribe([topic])
        records += poll_until(lambda: len(two.assignment()) == 2 and len(one.assignment()) == 2, one, two)
        assert one.assignment() | two.assignment() == set(partitions_of(topic))
        write(cluster, topic, 40, first=40)
        found: list[ConsumerRecord] = []
        while len(found) < 40:
            found += one.poll(0.1) + two.poll(0.1)
        for consumer in (one, two):
            consumer.commit()
        two.close()
        found += poll_until(lambda: one.assignment() == set(partitions_of(topic)), one)
        write(cluster, topic, 40, first=80)
        found += read(one, 40)
    assert values(records + found) == list(range(120))


@pytest.mark.parametrize(
    ("api_key", "code"),
    [
        (HEARTBEAT, ErrorCode.REBALANCE_IN_PROGRESS),
        (HEARTBEAT, ErrorCode.UNKNOWN_MEMBER_ID),
        (HEARTBEAT, ErrorCode.ILLEGAL_GENERATION),
        (JOIN_GROUP, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (JOIN_GROUP, ErrorCode.UNKNOWN_MEMBER_ID),
        (SYNC_GROUP, ErrorCode.REBALANCE_IN_PROGRESS),
        (SYNC_GROUP, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_member_survives_errors_of_its_coordinator(cluster: MockCluster, topic: str, api_key: int, code: int) -> None:
    write(cluster, topic, 40)
    with consumer_of(cluster, group_id=topic) as consumer:
        if api_key != HEARTBEAT:
            cluster.fail_next(api_key, code)
        consumer.subscribe([topic])
        records = read(consumer, 40)
        consumer.commit()
        if api_key == HEARTBEAT:
            generation = consumer.group_metadata().generation_id
            cluster.fail_next(api_key, code)
            poll_until(lambda: consumer.group_metadata().generation_id > generation, consumer)
        write(cluster, topic, 40, first=40)
        records += read(consumer, 40)
        assert values(records) == list(range(80))
        consumer.commit()


def test_a_group_moves_with_its_coordinator(cluster: MockCluster, topic: str) -> None:
    cluster.coordinate(topic, 1)
    write(cluster, topic, 40)
    with consumer_of(cluster, group_id=topic) as consumer:
        consumer.subscribe([topic])
        records = read(consumer, 40)
        cluster.coordinate(topic, 2)
        consumer.commit()
        write(cluster, topic, 40, first=40)
        records += read(consumer, 40)
        assert values(records) == list(range(80))


# --- racks (KIP-881) ---


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_members_get_the_partitions_of_their_rack(cluster: MockCluster, topic: str, assignor: str) -> None:
    with ExitStack() as stack:
        members = {
            broker: stack.enter_context(
                consumer_of(
                    cluster, group_id=topic, client_rack=f"rack-{broker}", partition_assignment_strategy=assignor
                )
            )
            for broker in (1, 2)
        }
        for member in members.values():
            member.subscribe([topic])
        poll_until(lambda: all(len(member.assignment()) == 2 for member in members.values()), *members.values())
        for broker, member in members.items():
            replicas = {one.partition: one.replicas for one in member.partitions_for(topic)}
            assert {tuple(replicas[one.partition]) for one in member.assignment()} == {(broker,)}
