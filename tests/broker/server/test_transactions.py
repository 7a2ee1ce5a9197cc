"""Transactions over a socket: what readers see, the errors of each version, offsets, topics that go away."""

from __future__ import annotations

from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.describe_producers import DescribeProducersRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from broker.protocol.messages.list_transactions import ListTransactionsRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.server.transaction_ends import SLICE_PARTITIONS
from tests.harness.requests import batch, create_topic, fetch, fetch_request, produce, produce_request, values_of
from tests.harness.running import RunningBroker, until
from tests.harness.transactions import READ_COMMITTED, TransactionalProducer, describe, describing
from tests.harness.wire_client import WireClient


def committed(client: WireClient, topic: str, offset: int = 0, partition: int = 0) -> Any:
    """The row of a Fetch of committed records."""
    return fetch(client, topic, offset, partition=partition, isolation_level=READ_COMMITTED)


def latest(client: WireClient, topic: str, isolation_level: int) -> int:
    rows = [ListOffsetsRequest.Partition(partition_index=0, timestamp=-1)]
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.Topic(name=topic, partitions=rows)])
    request.isolation_level = isolation_level
    offset: int = client.ask(request).topics[0].partitions[0].offset
    return offset


def test_records_are_read_committed_when_the_transaction_commits(client: WireClient) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")

    assert producer.produce("t", b"a", b"b").error_code == ErrorCode.NONE
    before = committed(client, "t")
    assert (before.last_stable_offset, before.high_watermark, values_of(before)) == (0, 2, [])
    assert values_of(fetch(client, "t", 0)) == [b"a", b"b"]
    assert [latest(client, "t", level) for level in (0, READ_COMMITTED)] == [2, 0]

    assert producer.end(committed=True) == ErrorCode.NONE
    after = committed(client, "t")
    assert (after.last_stable_offset, after.high_watermark, after.aborted_transactions) == (3, 3, [])
    assert values_of(after)[:2] == [b"a", b"b"]
    assert latest(client, "t", READ_COMMITTED) == 3
    assert producer.state() == "CompleteCommit"


def test_committed_records_stay_readable_when_the_next_transaction_begins(client: WireClient) -> None:
    create_topic(client, "t")
    produce(client, "t", b"plain")
    producer = TransactionalProducer(client, "tx")
    producer.produce("t", b"first")
    assert values_of(committed(client, "t")) == [b"plain"]

    producer.end(committed=True)
    producer.produce("t", b"second")

    assert committed(client, "t").last_stable_offset == 3
    assert values_of(committed(client, "t"))[:2] == [b"plain", b"first"]
    assert values_of(committed(client, "t", 1))[:1] == [b"first"]


def test_a_refused_batch_is_answered_with_the_start_of_the_log(client: WireClient) -> None:
    create_topic(client, "t")
    row = produce(client, "t", b"a", producer_id=7, producer_epoch=0, base_sequence=-1)
    assert (row.error_code, row.log_start_offset) == (ErrorCode.INVALID_RECORD, 0)


def test_an_answer_names_the_aborted_transactions_that_it_reaches(client: WireClient) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")
    ids = []
    for value in (b"a" * 1000, b"b" * 1000):
        producer.produce("t", value)
        ids.append(producer.producer_id)
        assert producer.end(committed=False) == ErrorCode.NONE

    def aborted(**limits: int) -> list[tuple[int, int]]:
        row = fetch(client, "t", 0, isolation_level=READ_COMMITTED, **limits)
        return [(found.producer_id, found.first_offset) for found in row.aborted_transactions]

    assert aborted() == [(ids[0], 0), (ids[1], 2)]
    assert aborted(partition_max_bytes=1) == [(ids[0], 0)]
    assert fetch(client, "t", 0).aborted_transactions is None


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_end_of_a_transaction_wakes_a_long_poll_of_committed_records(
    running: RunningBroker, client: WireClient, is_commit: bool
) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")
    with running.client() as reader:
        reader.send(fetch_request("t", 0, max_wait_ms=60_000, isolation_level=READ_COMMITTED), 12)
        producer.produce("t", b"a")
        assert reader.is_quiet()

        producer.end(committed=is_commit)

        row = reader.receive().responses[0].partitions[0]
        assert values_of(row)[:1] == [b"a"]
        assert len(row.aborted_transactions) == (not is_commit)


def test_the_first_transaction_of_a_partition_hides_those_that_end_before_it(
    running: RunningBroker, client: WireClient
) -> None:
    create_topic(client, "t")
    first, second = (TransactionalProducer(client, name) for name in ("first", "second"))
    first.produce("t", b"a")
    second.produce("t", b"b")
    second.end(committed=True)
    assert committed(client, "t").last_stable_offset == 0

    first.end(committed=False)

    assert committed(client, "t").last_stable_offset == 4


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (9, ErrorCode.INVALID_TXN_STATE),
        (10, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE),
        (12, ErrorCode.NONE),
    ],
)
def test_produce_to_a_partition_that_was_not_added_fails_before_version_12(
    client: WireClient, version: int, error: ErrorCode
) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")

    assert producer.produce("t", b"a", version=version).error_code == error

    assert fetch(client, "t", 0).high_watermark == (not error)


@pytest.mark.parametrize(("version", "error"), [(11, ErrorCode.NONE), (12, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)])
def test_an_unknown_producer_starts_with_sequence_0_since_version_12(
    client: WireClient, version: int, error: ErrorCode
) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")
    producer.add_partitions(("t", 0))
    producer.produce_request(("t", 0), values=(b"lost",))

    assert producer.produce("t", b"a", version=version).error_code == error


def test_an_old_epoch_is_refused_before_the_transactional_id_is_looked_up(client: WireClient) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")
    producer.produce("t", b"a")
    producer.end(committed=True)
    producer.use(producer.producer_id, producer.epoch - 1)

    request = producer.produce_request(("t", 0))
    request.transactional_id = "unknown"

    row = client.ask(request, 12).responses[0].partition_responses[0]
    assert row.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_producer_of_version_1_adds_partitions_and_keeps_its_epoch(client: WireClient) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")
    for is_commit in (True, False):
        assert producer.add_partitions(("t", 0)) == [ErrorCode.NONE]
        assert producer.produce("t", b"a", version=11).error_code == ErrorCode.NONE
        assert producer.end(committed=is_commit, version=4) == ErrorCode.NONE

    assert committed(client, "t").last_stable_offset == 4
    assert describe(client, "tx").producer_epoch == producer.epoch


def test_a_partition_that_cannot_be_added_leaves_the_transaction_as_it_was(client: WireClient) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")

    codes = producer.add_partitions(("t", 0), ("t", 1), ("absent", 0), ("__consumer_offsets", 0))

    assert codes == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ]
    assert producer.state() == "Empty"


def test_brokers_add_and_verify_partitions_of_several_transactions(client: WireClient) -> None:
    create_topic(client, "t", 2)
    producer = TransactionalProducer(client, "tx")
    producer.add_partitions(("t", 0))
    Topic, Transaction = AddPartitionsToTxnRequest.Topic, AddPartitionsToTxnRequest.Transaction

    def asked(transactional_id: str, *topics: AddPartitionsToTxnRequest.Topic) -> AddPartitionsToTxnRequest.Transaction:
        return Transaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=True,
            topics=list(topics),
        )

    request = AddPartitionsToTxnRequest(
        transactions=[
            asked("tx", Topic(name="t", partitions=[0, 1])),
            asked("unknown", Topic(name="t", partitions=[0])),
            asked("absent", Topic(name="absent", partitions=[0]), Topic(name="t", partitions=[0])),
        ]
    )
    answer = client.ask(request, 5)

    assert answer.error_code == ErrorCode.NONE
    assert {
        row.transactional_id: [
            part.partition_error_code for topic in row.topic_results for part in topic.results_by_partition
        ]
        for row in answer.results_by_transaction
    } == {
        "tx": [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE],
        "unknown": [ErrorCode.INVALID_PRODUCER_ID_MAPPING],
        "absent": [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED],
    }


def test_a_fenced_producer_can_neither_write_nor_commit(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    old = TransactionalProducer(client, "tx")
    old.produce("t", b"old")
    new = TransactionalProducer(client, "tx")

    assert old.produce("t", b"late").error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.end(committed=True) == ErrorCode.PRODUCER_FENCED
    assert old.end(committed=True, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    new.produce("t", b"new")
    new.end(committed=True)

    row = committed(client, "t")
    assert [(found.producer_id, found.first_offset) for found in row.aborted_transactions] == [(old.producer_id, 0)]
    assert b"late" not in values_of(row)


@pytest.mark.parametrize("version", [8, 12])
def test_transactional_records_need_a_transactional_id(client: WireClient, version: int) -> None:
    create_topic(client, "t")
    request = produce_request("t", batch(b"x", is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0))
    (row,) = client.ask(request, version).responses[0].partition_responses
    assert row.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_records_of_two_producers_are_refused_together(client: WireClient) -> None:
    create_topic(client, "t", 2)
    one, two = (TransactionalProducer(client, name) for name in ("one", "two"))
    request = one.produce_request(("t", 0))
    request.topic_data += two.produce_request(("t", 1)).topic_data

    rows = client.ask(request, 12).responses

    assert {row.partition_responses[0].error_code for row in rows} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_a_partition_that_is_named_twice_takes_no_unverified_batch(client: WireClient) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")
    request = producer.produce_request(("t", 0))
    unknown = batch(b"x", is_transactional=True, producer_id=777, producer_epoch=0, base_sequence=0)
    request.topic_data[0].partition_data.insert(0, ProduceRequest.Partition(index=0, records=unknown))

    (topic,) = client.ask(request, 12).responses

    assert {row.error_code for row in topic.partition_responses} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert committed(client, "t").high_watermark == 0


def test_a_request_may_mix_transactional_records_with_others(client: WireClient) -> None:
    create_topic(client, "t", 2)
    producer = TransactionalProducer(client, "tx")
    request = producer.produce_request(("t", 0))
    request.topic_data += produce_request("t", batch(b"plain"), partition=1).topic_data

    rows = client.ask(request, 12).responses

    assert [row.partition_responses[0].error_code for row in rows] == [ErrorCode.NONE] * 2
    assert committed(client, "t", partition=1).last_stable_offset == 1
    assert committed(client, "t").last_stable_offset == 0


def test_a_transaction_ends_when_one_of_its_topics_was_deleted(client: WireClient) -> None:
    for name in ("kept", "deleted", "again"):
        create_topic(client, name)
    producer = TransactionalProducer(client, "tx")
    for name in ("kept", "deleted", "again"):
        producer.produce(name, b"x")
    deleted = [DeleteTopicsRequest.Topic(name=name) for name in ("deleted", "again")]
    client.ask(DeleteTopicsRequest(topics=deleted, timeout_ms=1000), 6)
    create_topic(client, "again")
    produce(client, "again", b"later")

    assert producer.end(committed=True) == ErrorCode.NONE

    assert producer.state() == "CompleteCommit"
    assert committed(client, "kept").last_stable_offset == 2
    assert values_of(committed(client, "again"))[:1] == [b"later"]
    assert committed(client, "again").last_stable_offset == 2


def test_producers_of_a_partition_are_described_with_their_open_transaction(client: WireClient) -> None:
    create_topic(client, "t")
    produce(client, "t", b"x")
    producer = TransactionalProducer(client, "tx")
    producer.produce("t", b"a", b"b")
    request = DescribeProducersRequest(
        topics=[
            DescribeProducersRequest.Topic(name="t", partition_indexes=[0, 1]),
            DescribeProducersRequest.Topic(name="no/topic", partition_indexes=[0]),
        ]
    )

    def described() -> list[int]:
        (found,) = client.ask(request).topics[0].partitions[0].active_producers
        return [found.producer_id, found.producer_epoch, found.last_sequence, found.current_txn_start_offset]

    assert described() == [producer.producer_id, producer.epoch, 1, 1]
    topics = client.ask(request).topics
    assert topics[0].partitions[1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topics[1].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    producer.end(committed=False)
    assert described() == [producer.producer_id, producer.epoch, -1, -1]


def test_transactions_are_listed_by_state_and_producer_id(client: WireClient) -> None:
    create_topic(client, "t")
    idle, open_ = (TransactionalProducer(client, name) for name in ("idle", "open"))
    open_.produce("t", b"a")

    def listed(**filters: list[Any]) -> list[str]:
        asked: dict[str, Any] = {"state_filters": [], "producer_id_filters": []} | filters
        rows = client.ask(ListTransactionsRequest(**asked)).transaction_states
        return sorted(row.transactional_id for row in rows)

    assert listed() == ["idle", "open"]
    assert listed(state_filters=["Ongoing"]) == ["open"]
    assert listed(producer_id_filters=[idle.producer_id]) == ["idle"]


def test_a_client_finds_the_coordinator_of_transactions_here(running: RunningBroker, client: WireClient) -> None:
    found = client.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["tx"]), 6).coordinators[0]
    assert (found.error_code, found.port) == (ErrorCode.NONE, running.address[1])


def test_a_transaction_is_aborted_when_its_time_is_over(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx", timeout_ms=1)
    with running.client() as reader:
        reader.send(fetch_request("t", 0, max_wait_ms=60_000, isolation_level=READ_COMMITTED), 12)
        producer.produce("t", b"a")

        row = reader.receive().responses[0].partitions[0]

    assert (row.last_stable_offset, len(row.aborted_transactions)) == (2, 1)
    assert producer.state() == "CompleteAbort"
    assert producer.end(committed=True) != ErrorCode.NONE


def test_the_end_of_a_large_transaction_takes_several_turns(client: WireClient) -> None:
    count = 5 * SLICE_PARTITIONS + 1
    create_topic(client, "t", count)
    producer = TransactionalProducer(client, "tx")
    client.ask(producer.produce_request(*[("t", index) for index in range(count)]), 12)

    late = producer.produce_request(("t", count - 1))
    requests = [(producer.end_request(committed=True), 5), (describing("tx"), 0), (late, 12)]
    client.send_bytes(b"".join(client.frame(request, version) for request, version in requests))
    ended, described, produced = [client.receive() for _ in requests]

    assert ended.error_code == ErrorCode.NONE
    assert described.transaction_states[0].transaction_state == "PrepareCommit"
    # It has the epoch of the transaction whose marker is not written yet.
    assert produced.responses[0].partition_responses[0].error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert until(lambda: producer.state() == "CompleteCommit")
    assert [committed(client, "t", partition=index).last_stable_offset for index in (0, count - 1)] == [2, 2]
