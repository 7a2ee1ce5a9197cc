"""Hanging transactions, which our broker does not have, with scripted answers: found, and ended by a marker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_producers import DescribeProducersResponse
from broker.protocol.messages.describe_transactions import DescribeTransactionsResponse
from broker.protocol.messages.list_transactions import ListTransactionsResponse
from broker.protocol.messages.write_txn_markers import WriteTxnMarkersResponse
from kgctl.client.admin.aborts import HangingTarget, find_hanging, plan_marker, write_marker
from kgctl.client.net.errors import BrokerError, NotFound
from kgctl.client.net.steps import Call
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import HangingTransaction
from tests.harness.feeding import FIND_COORDINATOR, METADATA, Feeder, cluster, coordinators, metadata
from tests.harness.group_answers import by_timestamp

LIST_OFFSETS, WRITE_TXN_MARKERS, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 2, 27, 61, 65, 66
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOW = 1_700_000_000_000
MINUTE = 60_000
Producer = DescribeProducersResponse.Producer


def producer(producer_id: int, start: int, *, age_ms: int = 20 * MINUTE, coordinator_epoch: int = 4) -> Producer:
    return Producer(
        producer_id=producer_id,
        producer_epoch=2,
        last_sequence=0,
        last_timestamp=NOW - age_ms,
        coordinator_epoch=coordinator_epoch,
        current_txn_start_offset=start,
    )


def feeder(
    producers: Mapping[TopicPartition, Sequence[Producer]],
    ids: Mapping[str, int] | None = None,
    transactions: Mapping[str, Sequence[TopicPartition]] | None = None,
) -> Feeder:
    """`ids`: the producer of each transactional id; `transactions`: the partitions of its open transaction."""
    ids, transactions = ids or {}, transactions or {}

    def describe_producers(call: Call) -> DescribeProducersResponse:
        request: Any = call.request
        rows = DescribeProducersResponse.Partition
        return DescribeProducersResponse(
            topics=[
                DescribeProducersResponse.Topic(
                    name=topic.name,
                    partitions=[
                        rows(partition_index=n, active_producers=list(producers.get(TopicPartition(topic.name, n), ())))
                        for n in topic.partition_indexes
                    ],
                )
                for topic in request.topics
            ]
        )

    def list_transactions(call: Call) -> ListTransactionsResponse:
        request: Any = call.request
        rows = [
            ListTransactionsResponse.Transaction(
                transactional_id=name,
                producer_id=one,
                transaction_state="Ongoing" if transactions.get(name) else "Empty",
            )
            for name, one in ids.items()
            if one in request.producer_id_filters
        ]
        return ListTransactionsResponse(transaction_states=rows)

    def describe_transactions(call: Call) -> DescribeTransactionsResponse:
        request: Any = call.request
        return DescribeTransactionsResponse(
            transaction_states=[
                DescribeTransactionsResponse.Transaction(
                    transactional_id=name,
                    transaction_state="Ongoing",
                    transaction_timeout_ms=MINUTE,
                    transaction_start_time_ms=NOW - MINUTE,
                    producer_id=ids[name],
                    producer_epoch=2,
                    topics=[
                        DescribeTransactionsResponse.Topic(topic=key.topic, partitions=[key.partition])
                        for key in transactions.get(name, ())
                    ],
                )
                for name in request.transactional_ids
            ]
        )

    return Feeder(
        {
            METADATA: metadata({"orders": {0: 1, 1: 1}}),
            FIND_COORDINATOR: coordinators(lambda name: 1),
            LIST_OFFSETS: by_timestamp({-1: {P0: 50, P1: 50}}),
            DESCRIBE_PRODUCERS: describe_producers,
            LIST_TRANSACTIONS: list_transactions,
            DESCRIBE_TRANSACTIONS: describe_transactions,
        }
    )


def found_by(feed: Feeder, older_than_ms: int = 15 * MINUTE) -> list[HangingTransaction]:
    return feed.run(find_hanging(cluster(), None, None, None, older_than_ms, NOW))


def test_a_transaction_of_an_unknown_producer_hangs() -> None:
    (row,) = found_by(feeder({P1: [producer(7, 30), producer(8, -1)]}))
    assert (row.topic, row.partition, row.producer_id, row.start_offset) == ("orders", 1, 7, 30)
    assert (row.duration_ms, row.waiting_records) == (20 * MINUTE, 20)


def test_a_transaction_that_its_coordinator_will_end_does_not_hang() -> None:
    assert found_by(feeder({P1: [producer(7, 30)]}, {"tx": 7}, {"tx": [P1]})) == []


def test_a_transaction_without_this_partition_hangs() -> None:
    rows = found_by(feeder({P0: [producer(7, 0)], P1: [producer(7, 30)]}, {"tx": 7}, {"tx": [P0]}))
    assert [(row.topic, row.partition) for row in rows] == [P1]


def test_a_young_transaction_is_not_suspected() -> None:
    feed = feeder({P1: [producer(7, 30, age_ms=MINUTE)]})
    assert found_by(feed) == []
    assert not feed.calls(LIST_TRANSACTIONS)
    assert len(found_by(feed, older_than_ms=0)) == 1


def test_nothing_hangs_because_a_coordinator_does_not_answer() -> None:
    feed = feeder({P1: [producer(7, 30)]})
    feed.answers[LIST_TRANSACTIONS] = lambda call: ListTransactionsResponse(
        error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    with pytest.raises(BrokerError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        found_by(feed)
    assert feed.pauses


def test_an_unknown_partition_or_broker_is_named() -> None:
    feed = feeder({})
    with pytest.raises(NotFound, match="no partition 7"):
        feed.run(find_hanging(cluster(), ["orders"], [7], None, 0, NOW))
    with pytest.raises(NotFound, match="no broker 9"):
        feed.run(find_hanging(cluster(), None, None, 9, 0, NOW))


def test_the_marker_carries_the_epochs_that_the_partition_knows() -> None:
    feed = feeder({P1: [producer(7, 30, coordinator_epoch=-1), producer(8, 40)]})
    sent = []

    def write(call: Call) -> WriteTxnMarkersResponse:
        sent.append(call.request)
        row = WriteTxnMarkersResponse.Partition(partition_index=1)
        topic = WriteTxnMarkersResponse.Topic(name="orders", partitions=[row])
        return WriteTxnMarkersResponse(markers=[WriteTxnMarkersResponse.Marker(producer_id=7, topics=[topic])])

    feed.answers[WRITE_TXN_MARKERS] = write
    for start, producer_id, epoch in ((30, 7, 0), (40, 8, 4)):
        plan = feed.run(plan_marker(cluster(), HangingTarget(P1, start), NOW, force=False))
        assert (plan.error, plan.producer_id, plan.age_ms) == (None, producer_id, 20 * MINUTE)
        assert feed.run(write_marker(cluster(), plan)).status == "done"
        (marker,) = sent.pop().markers
        assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (producer_id, 2, epoch)
        assert not marker.transaction_result


def test_a_broker_without_describe_producers_gets_what_the_user_names() -> None:
    feed = feeder({})
    del feed.offered[DESCRIBE_PRODUCERS]
    target = HangingTarget(P1, producer_id=7, producer_epoch=3, coordinator_epoch=-1)
    plan = feed.run(plan_marker(cluster(), target, NOW, force=False))
    assert (plan.error, plan.producer_epoch, plan.coordinator_epoch) == (None, 3, 0)
