"""The producer on librdkafka's mock cluster: several brokers, errors on demand, leaders that move, brokers that stop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.protocol.errors import ErrorCode
from kgctl.client.producer.core.errors import TransactionAbortable
from kgctl.client.producer.producer import Producer
from tests.harness.mock_cluster import MockCluster, mock_cluster
from tests.harness.streaming import records_of

PRODUCE, INIT_PRODUCER_ID, END_TXN = 0, 22, 26


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with mock_cluster() as cluster:
        cluster.create("t", 4)
        yield cluster


def values(cluster: MockCluster, partition: int, count: int) -> list[bytes]:
    return [one.value() for one in records_of(cluster.bootstrap_servers, "t", partition, count)]


@pytest.mark.parametrize(
    "codes",
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS),
        (0, ErrorCode.LEADER_NOT_AVAILABLE, 0, ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
    ],
)
def test_passing_errors_neither_lose_nor_reorder_records(cluster: MockCluster, codes: tuple[int, ...]) -> None:
    # The mock brokers do not check sequences, so only one request may be in flight.
    with Producer(
        bootstrap_servers=cluster.bootstrap_servers,
        batch_size=200,
        retry_backoff_ms=10,
        max_in_flight_requests_per_connection=1,
    ) as producer:
        producer.send("t", b"first", partition=1).result(30)
        cluster.fail_next(PRODUCE, *codes)
        sent = [producer.send("t", b"%d" % number, partition=1) for number in range(300)]
        assert all(one.result(30).partition == 1 for one in sent)
    assert values(cluster, 1, 301) == [b"first", *(b"%d" % number for number in range(300))]


def test_a_final_error_fails_its_records_alone(cluster: MockCluster) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        cluster.fail_next(PRODUCE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        refused = producer.send("t", b"refused", partition=0)
        error = refused.exception(30)
        assert error is not None
        assert error.name == "TOPIC_AUTHORIZATION_FAILED"
        assert producer.send("t", b"written", partition=0).result(30).offset == 0


def test_leaders_move_and_brokers_stop(cluster: MockCluster) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap_servers, batch_size=100, retry_backoff_ms=10) as producer:
        sent = []
        for number in range(400):
            if number == 100:
                cluster.lead("t", 2, 1 + number % 3)
            if number == 200:
                cluster.stop(2)
                cluster.lead("t", 2, 3)
            if number == 300:
                cluster.start(2)
                cluster.lead("t", 2, 2)
            sent.append(producer.send("t", b"%d" % number, partition=2))
            if not number % 50:
                sent[-1].result(30)
        producer.flush(30)
        assert all(one.exception() is None for one in sent)
    assert values(cluster, 2, 400) == [b"%d" % number for number in range(400)]


def test_a_slow_broker_delays_its_own_partitions_only(cluster: MockCluster) -> None:
    for partition in range(3):
        cluster.lead("t", partition, partition + 1)
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        for partition in range(3):
            producer.send("t", b"first", partition=partition).result(30)
        cluster.delay(3, 1500)
        slow = producer.send("t", b"slow", partition=2)
        quick = [producer.send("t", b"quick", partition=partition) for partition in (0, 1)]
        assert all(one.result(30) for one in quick)
        assert not slow.done()
        assert slow.result(30).partition == 2


def test_transactions_survive_a_coordinator_that_is_busy_and_abort_after_an_error(cluster: MockCluster) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="tx", retry_backoff_ms=10) as producer:
        cluster.fail_next(INIT_PRODUCER_ID, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.CONCURRENT_TRANSACTIONS)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"a", partition=0)
        cluster.fail_next(END_TXN, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
        producer.commit_transaction()
        producer.begin_transaction()
        cluster.fail_next(PRODUCE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        producer.send("t", b"b", partition=0)
        with pytest.raises(TransactionAbortable):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        assert producer.send("t", b"c", partition=0).result(30).partition == 0
        producer.commit_transaction()
