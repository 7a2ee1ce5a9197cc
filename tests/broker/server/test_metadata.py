"""Metadata, DescribeTopicPartitions, DescribeCluster and DescribeLogDirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_cluster import DescribeClusterRequest
from broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from broker.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from broker.protocol.messages.metadata import MetadataRequest
from tests.harness.requests import create_topic, metadata_of, produce
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient

INTERNAL = ["__consumer_offsets", "__kgctl_group_events", "__transaction_state"]


def names(answer: Any) -> list[str]:
    return [topic.name for topic in answer.topics]


def test_every_version_answers_broker_and_partitions(running: RunningBroker, client: WireClient) -> None:
    topic_id = create_topic(client, "t", partitions=2).topic_id
    for version in MetadataRequest.VERSIONS:
        answer = metadata_of(client, "t", version=version)
        assert [(broker.node_id, broker.host, broker.port) for broker in answer.brokers] == [(1, *running.address)]
        (topic,) = answer.topics
        assert (topic.error_code, topic.name) == (ErrorCode.NONE, "t")
        assert topic.topic_id == (topic_id if version >= 10 else bytes(16))
        assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
            (0, 1, [1], [1]),
            (1, 1, [1], [1]),
        ]
        assert answer.controller_id == (1 if version >= 1 else -1)
        if version >= 2:
            assert answer.cluster_id == running.log.cluster_id


def test_an_empty_list_means_all_topics_in_version_0_and_none_later(client: WireClient) -> None:
    create_topic(client, "t")

    assert names(client.ask(MetadataRequest(topics=[]), 0)) == [*INTERNAL, "t"]
    for version in range(1, 14):
        assert names(client.ask(MetadataRequest(topics=[]), version)) == []
        assert names(client.ask(MetadataRequest(topics=None), version)) == [*INTERNAL, "t"]


def test_the_offsets_topic_exists_from_the_start(client: WireClient) -> None:
    (topic,) = metadata_of(client, INTERNAL[0]).topics

    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (ErrorCode.NONE, True, 50)


def test_a_missing_topic_is_created_at_once(client: WireClient) -> None:
    (topic,) = metadata_of(client, "new").topics

    assert (topic.error_code, len(topic.partitions), topic.is_internal) == (ErrorCode.NONE, 1, False)
    assert names(client.ask(MetadataRequest(topics=None))) == [*INTERNAL, "new"]
    assert metadata_of(client, "new").topics[0].topic_id == topic.topic_id


def test_versions_that_cannot_forbid_it_create_missing_topics(client: WireClient) -> None:
    assert metadata_of(client, "new", version=3, create=False).topics[0].error_code == ErrorCode.NONE


def test_a_missing_topic_is_not_created_where_that_is_forbidden(client: WireClient, tmp_path: Path) -> None:
    for version in range(4, 14):
        (topic,) = metadata_of(client, "new", version=version, create=False).topics
        assert (topic.error_code, topic.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    with RunningBroker(tmp_path / "other", auto_create_topics_enable="false") as other, other.client() as strict:
        (topic,) = metadata_of(strict, "new").topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_new_name_that_collides_with_a_topic_is_invalid(client: WireClient) -> None:
    found = metadata_of(client, "a.b", "a_b", "a.c").topics
    assert [topic.error_code for topic in found] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE]


def test_a_request_creates_a_thousand_partitions_and_the_next_one_the_rest(client: WireClient) -> None:
    wanted = [f"t{number}" for number in range(1001)]
    codes = [topic.error_code for topic in metadata_of(client, *wanted).topics]
    assert codes == [ErrorCode.NONE] * 1000 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert {topic.error_code for topic in metadata_of(client, *wanted).topics} == {ErrorCode.NONE}


def test_the_first_missing_topic_is_created_whatever_its_number_of_partitions(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "wide", num_partitions="1001") as running, running.client() as client:
        first, second = metadata_of(client, "a", "b").topics
        assert (len(first.partitions), second.error_code) == (1001, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_an_invalid_name_is_an_invalid_topic(client: WireClient) -> None:
    invalid = ["", ".", "..", "a b", "ü", "a/b", "x" * 250]
    for create in (True, False):
        found = metadata_of(client, *invalid, create=create).topics
        assert [(topic.error_code, topic.name) for topic in found] == [
            (ErrorCode.INVALID_TOPIC_EXCEPTION, name) for name in invalid
        ]
    assert names(client.ask(MetadataRequest(topics=None))) == INTERNAL


def test_the_longest_name_is_249_characters(client: WireClient) -> None:
    assert metadata_of(client, "x" * 249).topics[0].error_code == ErrorCode.NONE


def test_topics_are_found_by_id(client: WireClient) -> None:
    topic_id = create_topic(client, "t").topic_id
    asked = [MetadataRequest.Topic(topic_id=topic_id, name=None), MetadataRequest.Topic(topic_id=b"?" * 16, name=None)]

    found, absent = client.ask(MetadataRequest(topics=asked), 12).topics

    assert (found.error_code, found.name) == (ErrorCode.NONE, "t")
    assert (absent.error_code, absent.name, absent.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, b"?" * 16)


def test_authorized_operations_are_answered_on_request(client: WireClient) -> None:
    create_topic(client, "t")
    asked = [MetadataRequest.Topic(name="t")]
    plain = client.ask(MetadataRequest(topics=asked), 10)
    full = client.ask(
        MetadataRequest(
            topics=asked, include_topic_authorized_operations=True, include_cluster_authorized_operations=True
        ),
        10,
    )

    assert plain.topics[0].topic_authorized_operations == plain.cluster_authorized_operations == -(2**31)
    # Read, write, create, delete, alter, describe, describe configs, alter configs.
    assert full.topics[0].topic_authorized_operations == 0b110111111000
    # Create, alter, describe, cluster action, describe configs, alter configs, idempotent write.
    assert full.cluster_authorized_operations == 0b1111110100000


def test_clients_get_the_advertised_address(tmp_path: Path) -> None:
    options = {"advertised_listeners": "PLAINTEXT://kafka.example:1234", "node_id": "7", "broker_rack": "r1"}
    with RunningBroker(tmp_path, **options) as running, running.client() as client:
        (broker,) = metadata_of(client).brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (7, "kafka.example", 1234, "r1")


def page(client: WireClient, *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.Topic(name=name) for name in topics], response_partition_limit=limit
    )
    if cursor is not None:
        request.cursor = DescribeTopicPartitionsRequest.Cursor(topic_name=cursor[0], partition_index=cursor[1])
    return client.ask(request)


def test_partitions_are_described_with_empty_lists_and_not_with_null(client: WireClient) -> None:
    create_topic(client, "t")

    answer = page(client, "t", "absent", "not valid")

    by_name = {topic.name: topic for topic in answer.topics}
    (partition,) = by_name["t"].partitions
    assert (partition.eligible_leader_replicas, partition.last_known_elr, partition.offline_replicas) == ([], [], [])
    assert (partition.replica_nodes, partition.isr_nodes, partition.leader_id) == ([1], [1], 1)
    assert by_name["absent"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert by_name["not valid"].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert answer.next_cursor is None


def test_pages_of_partitions_have_no_gaps(client: WireClient) -> None:
    for name, count in (("a", 3), ("b", 1), ("c", 4)):
        create_topic(client, name, partitions=count)
    wanted = [(name, index) for name, count in (("a", 3), ("b", 1), ("c", 4)) for index in range(count)]
    for limit in range(1, 9):
        seen: list[tuple[str, int]] = []
        cursor = None
        while True:
            answer = page(client, "c", "a", "b", limit=limit, cursor=cursor)
            rows = [(t.name, p.partition_index) for t in answer.topics for p in t.partitions]
            assert len(rows) <= limit
            seen += rows
            if answer.next_cursor is None:
                break
            cursor = answer.next_cursor.topic_name, answer.next_cursor.partition_index
        assert seen == wanted


def test_a_request_without_topics_describes_all_topics(client: WireClient) -> None:
    create_topic(client, "t")
    assert names(page(client)) == [*INTERNAL, "t"]


def test_the_cluster_is_one_broker_which_is_the_controller(running: RunningBroker, client: WireClient) -> None:
    for version in range(3):
        answer = client.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), version)
        assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [(1, *running.address)]
        assert (answer.error_code, answer.controller_id, answer.cluster_id) == (
            ErrorCode.NONE,
            1,
            running.log.cluster_id,
        )
    asked = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2)
    assert client.ask(asked).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    asked.endpoint_type = 9
    assert client.ask(asked).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def test_log_dirs_report_the_sizes_of_the_named_partitions(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t", partitions=2)
    produce(client, "t", b"x" * 1000)
    asked = DescribeLogDirsRequest(topics=[DescribeLogDirsRequest.Topic(topic="t", partitions=[0, 1, 2])])

    (directory,) = client.ask(asked).results

    assert directory.log_dir == str(running.data_dir)
    assert directory.total_bytes >= directory.usable_bytes > 0
    (topic,) = directory.topics
    assert [(p.partition_index, p.partition_size > 1000) for p in topic.partitions] == [(0, True), (1, False)]
    everything = client.ask(DescribeLogDirsRequest(topics=None)).results[0]
    assert sorted(topic.name for topic in everything.topics) == [*INTERNAL, "t"]
