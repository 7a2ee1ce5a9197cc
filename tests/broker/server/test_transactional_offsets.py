"""Offsets that become committed with a transaction."""

from __future__ import annotations

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.harness.requests import create_topic, fetch
from tests.harness.transactions import READ_COMMITTED, TransactionalProducer
from tests.harness.wire_client import WireClient


def fetched_offset(client: WireClient, group: str, topic: str, *, require_stable: bool = False) -> tuple[int, int]:
    """The committed offset of partition 0 and its error code."""
    topics = [OffsetFetchRequest.Topic(name=topic, partition_indexes=[0])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequest.Group(group_id=group, topics=topics)], require_stable=require_stable
    )
    row = client.ask(request, 9).groups[0].topics[0].partitions[0]
    return row.committed_offset, row.error_code


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_become_committed_with_the_transaction(client: WireClient, is_commit: bool) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")

    assert producer.commit_offsets("g", "t", (0, 5), (1, 6)) == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert fetched_offset(client, "g", "t") == (-1, ErrorCode.NONE)
    assert fetched_offset(client, "g", "t", require_stable=True)[1] == ErrorCode.UNSTABLE_OFFSET_COMMIT

    producer.end(committed=is_commit)
    assert fetched_offset(client, "g", "t", require_stable=True) == (5 if is_commit else -1, ErrorCode.NONE)


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE), (5, ErrorCode.NONE)],
)
def test_offsets_of_a_group_that_was_not_added_are_refused_before_version_5(
    client: WireClient, version: int, error: ErrorCode
) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")
    producer.add_partitions(("t", 0))

    assert producer.commit_offsets("g", "t", (0, 5), version=version) == [error]
    assert producer.add_offsets("g") == ErrorCode.NONE
    assert producer.commit_offsets("g", "t", (0, 5), version=version) == [ErrorCode.NONE]


def test_offsets_of_no_group_or_no_topic_leave_the_transaction_as_it_was(client: WireClient) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")

    assert producer.commit_offsets("", "t", (0, 5), (1, 5)) == [
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert producer.commit_offsets("g", "absent", (0, 5)) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    assert producer.state() == "Empty"


def test_markers_of_an_administrator_end_a_transaction_in_a_partition(client: WireClient) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")
    producer.produce("t", b"a")
    producer.commit_offsets("g", "t", (0, 5))
    Topic = WriteTxnMarkersRequest.Topic
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=[
            Topic(name="t", partition_indexes=[0, 1]),
            Topic(name="__consumer_offsets", partition_indexes=list(range(50))),
        ],
        coordinator_epoch=0,
    )
    (answer,) = client.ask(WriteTxnMarkersRequest(markers=[marker])).markers

    assert answer.producer_id == producer.producer_id
    assert [row.error_code for row in answer.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert fetch(client, "t", 0, isolation_level=READ_COMMITTED).last_stable_offset == 2
    assert fetched_offset(client, "g", "t", require_stable=True) == (-1, ErrorCode.NONE)


def test_a_marker_with_an_older_epoch_is_refused_where_the_producer_has_pending_offsets(client: WireClient) -> None:
    create_topic(client, "t")
    epoch = TransactionalProducer(client, "tx").epoch
    producer = TransactionalProducer(client, "tx")
    producer.commit_offsets("g", "t", (0, 5))
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=producer.producer_id,
        producer_epoch=epoch,
        transaction_result=True,
        topics=[WriteTxnMarkersRequest.Topic(name="__consumer_offsets", partition_indexes=list(range(50)))],
        coordinator_epoch=0,
    )
    (answer,) = client.ask(WriteTxnMarkersRequest(markers=[marker])).markers

    errors = [row.error_code for row in answer.topics[0].partitions]
    assert sorted(errors) == [ErrorCode.NONE] * 49 + [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert fetched_offset(client, "g", "t", require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


def test_no_coordinator_epoch_of_an_administrator_stops_a_transaction(client: WireClient) -> None:
    create_topic(client, "t")
    producer = TransactionalProducer(client, "tx")
    producer.produce("t", b"aborted")
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=False,
        topics=[WriteTxnMarkersRequest.Topic(name="t", partition_indexes=[0])],
        coordinator_epoch=5,
    )
    client.ask(WriteTxnMarkersRequest(markers=[marker]))

    producer.produce("t", b"committed")
    assert producer.end(committed=True) == ErrorCode.NONE

    row = fetch(client, "t", 0, isolation_level=READ_COMMITTED)
    assert (row.last_stable_offset, row.high_watermark) == (4, 4)
