"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_records import DeleteRecordsRequest
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from broker.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tests.harness.requests import create_topic, fetch, list_offset, produce, values_of
from tests.harness.wire_client import WireClient

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


@pytest.fixture
def filled(client: WireClient) -> WireClient:
    """A client of topic t with offsets 0 and 1 at 1000 and 1001 ms, offset 2 at 5000 and offset 3 at 3000."""
    create_topic(client, "t")
    produce(client, "t", b"a", b"b", timestamp=1000)
    produce(client, "t", b"c", timestamp=5000)
    produce(client, "t", b"d", timestamp=3000)
    return client


def test_offsets_are_found_by_time(filled: WireClient) -> None:
    for timestamp, offset, found_timestamp in (
        (LATEST, 4, -1),
        (EARLIEST, 0, -1),
        (EARLIEST_LOCAL, 0, -1),
        (LATEST_TIERED, -1, -1),
        (MAX_TIMESTAMP, 2, 5000),
        (0, 0, 1000),
        (1001, 1, 1001),
        (1002, 2, 5000),
        (5000, 2, 5000),
        (5001, -1, -1),
    ):
        row = list_offset(filled, "t", timestamp)
        assert (row.error_code, row.offset, row.timestamp) == (ErrorCode.NONE, offset, found_timestamp)
        assert row.leader_epoch == (0 if offset >= 0 else -1)


def test_special_timestamps_are_known_since_their_version(filled: WireClient) -> None:
    first = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
    for timestamp, since in first.items():
        for version in range(1, 11):
            row = list_offset(filled, "t", timestamp, version=version)
            assert row.error_code == (ErrorCode.NONE if version >= since else ErrorCode.UNSUPPORTED_VERSION)


def test_an_unknown_special_timestamp_is_unsupported(filled: WireClient) -> None:
    assert list_offset(filled, "t", -6).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_an_empty_partition_starts_and_ends_at_0(client: WireClient) -> None:
    create_topic(client, "t")

    found = [list_offset(client, "t", timestamp).offset for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, 0)]

    assert found == [0, 0, -1, -1]


def test_unknown_partitions_and_epochs_are_errors(filled: WireClient) -> None:
    assert list_offset(filled, "t", LATEST, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(filled, "absent", LATEST).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    part = ListOffsetsRequest.Partition(partition_index=0, timestamp=LATEST, current_leader_epoch=3)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsRequest.Topic(name="t", partitions=[part])])
    assert filled.ask(request).topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_partition_named_twice_is_an_invalid_request(filled: WireClient) -> None:
    part = ListOffsetsRequest.Partition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsRequest.Topic(name="t", partitions=[part, part])])

    rows = filled.ask(request).topics[0].partitions

    assert [row.error_code for row in rows] == [ErrorCode.INVALID_REQUEST] * 2


def test_the_leader_epoch_ends_at_the_end_of_the_log(filled: WireClient) -> None:
    def asked(version: int, epoch: int, current: int = -1, partition: int = 0) -> tuple[int, int, int]:
        part = OffsetForLeaderEpochRequest.Partition(
            partition=partition, current_leader_epoch=current, leader_epoch=epoch
        )
        topic = OffsetForLeaderEpochRequest.Topic(topic="t", partitions=[part])
        row = filled.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic]), version).topics[0].partitions[0]
        return row.error_code, row.leader_epoch, row.end_offset

    for version in OffsetForLeaderEpochRequest.VERSIONS:
        assert asked(version, 0) == (ErrorCode.NONE, 0, 4)
        assert asked(version, 1) == (ErrorCode.NONE, -1, -1)
        assert asked(version, 0, current=0) == (ErrorCode.NONE, 0, 4)
        assert asked(version, 0, current=1) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
        assert asked(version, 0, partition=5) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)


def delete(client: WireClient, topic: str, offset: int, partition: int = 0) -> tuple[int, int]:
    part = DeleteRecordsRequest.Partition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsRequest.Topic(name=topic, partitions=[part])], timeout_ms=1000)
    row = client.ask(request).topics[0].partitions[0]
    return row.error_code, row.low_watermark


def test_deleted_records_are_out_of_range(filled: WireClient) -> None:
    assert delete(filled, "t", 2) == (ErrorCode.NONE, 2)

    assert list_offset(filled, "t", EARLIEST).offset == 2
    assert fetch(filled, "t", 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert values_of(fetch(filled, "t", 2)) == [b"c", b"d"]


def test_the_log_start_never_moves_back_and_minus_1_deletes_all(filled: WireClient) -> None:
    assert delete(filled, "t", 3) == (ErrorCode.NONE, 3)
    assert delete(filled, "t", 1) == (ErrorCode.NONE, 3)
    assert delete(filled, "t", -1) == (ErrorCode.NONE, 4)
    assert list_offset(filled, "t", LATEST).offset == 4


def test_records_that_do_not_exist_cannot_be_deleted(filled: WireClient) -> None:
    assert delete(filled, "t", 5) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(filled, "t", -2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(filled, "t", 0, partition=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(filled, "__consumer_offsets", -1) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
