"""CreateTopics, DeleteTopics, CreatePartitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_partitions import CreatePartitionsRequest
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.server.handlers.topics import CREATION
from tests.harness.requests import commit_request, create_topic, fetch, metadata_of, produce, values_of
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient

NO_ID = bytes(16)


def topic(name: str, partitions: int = 1, replicas: int = 1, **more: Any) -> CreateTopicsRequest.Topic:
    return CreateTopicsRequest.Topic(
        name=name, num_partitions=partitions, replication_factor=replicas, **{"assignments": [], "configs": [], **more}
    )


def assigned(name: str, *replicas: list[int], partitions: int = -1) -> CreateTopicsRequest.Topic:
    assignments = [
        CreateTopicsRequest.Assignment(partition_index=index, broker_ids=ids) for index, ids in enumerate(replicas)
    ]
    return topic(name, partitions, -1, assignments=assignments)


def create(client: WireClient, *topics: CreateTopicsRequest.Topic, version: int = 7, check: bool = False) -> list[Any]:
    return list(client.ask(CreateTopicsRequest(topics=list(topics), validate_only=check), version).topics)


def test_every_version_creates_topics(client: WireClient) -> None:
    for version in CreateTopicsRequest.VERSIONS:
        name = f"t{version}"
        (row,) = create(client, topic(name, 3), version=version)
        assert (row.error_code, row.error_message, row.name) == (ErrorCode.NONE, None, name)
        if version >= 5:
            assert (row.num_partitions, row.replication_factor) == (3, 1)
            assert {config.name: config.value for config in row.configs}["retention.ms"] == "604800000"
        (found,) = metadata_of(client, name, create=False).topics
        assert len(found.partitions) == 3
        assert row.topic_id == (found.topic_id if version >= 7 else NO_ID)


def test_minus_1_means_the_default_of_the_broker(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, num_partitions="4") as running, running.client() as client:
        assert create(client, topic("t", -1, -1))[0].num_partitions == 4
        assert len(metadata_of(client, "auto").topics[0].partitions) == 4


def test_topics_of_one_request_may_collide_and_have_their_own_configs(client: WireClient) -> None:
    short, long = ([CreateTopicsRequest.Config(name="retention.ms", value=value)] for value in ("1000", "2000"))
    rows = create(client, topic("a.b"), topic("c", configs=short), topic("a_b"), topic("d_", configs=long), topic("e"))

    assert [row.error_code for row in rows] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    retention = [{config.name: config.value for config in row.configs}.get("retention.ms") for row in rows]
    assert retention == ["604800000", "1000", None, "2000", "604800000"]


def test_a_validated_name_is_not_taken(client: WireClient) -> None:
    assert [row.error_code for row in create(client, topic("a.b"), topic("a_b"), check=True)] == [ErrorCode.NONE] * 2


def test_an_assignment_determines_the_partitions(client: WireClient) -> None:
    (row,) = create(client, assigned("t", [1], [1]))

    assert (row.error_code, row.num_partitions) == (ErrorCode.NONE, 2)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (topic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (topic("t", 10_001), ErrorCode.POLICY_VIOLATION),
        (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("not valid"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic("with_dot"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (assigned("t", [2]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", [1, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned("t", [1], partitions=1), ErrorCode.INVALID_REQUEST),
        (
            topic("t", configs=[CreateTopicsRequest.Config(name="retention.ms", value="soon")]),
            ErrorCode.INVALID_CONFIG,
        ),
        (topic("t", configs=[CreateTopicsRequest.Config(name="retention.ms", value=None)]), ErrorCode.INVALID_CONFIG),
        (topic("t", configs=[CreateTopicsRequest.Config(name="no.such", value="1")]), ErrorCode.INVALID_CONFIG),
        (
            topic(
                "t",
                configs=[
                    CreateTopicsRequest.Config(name="min.compaction.lag.ms", value="2"),
                    CreateTopicsRequest.Config(name="max.compaction.lag.ms", value="1"),
                ],
            ),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else "",
)
def test_an_invalid_topic_is_refused_with_a_reason(
    client: WireClient, asked: CreateTopicsRequest.Topic, code: ErrorCode
) -> None:
    create_topic(client, "there")
    create_topic(client, "with.dot")

    fine, refused = create(client, topic("fine"), asked)

    assert fine.error_code == ErrorCode.NONE
    assert (refused.error_code, bool(refused.error_message)) == (code, True)
    found = [row.name for row in client.ask(MetadataRequest(topics=None)).topics]
    assert found == ["__consumer_offsets", "__kgctl_group_events", "__transaction_state", "fine", "there", "with.dot"]


def test_a_topic_named_twice_is_not_created(client: WireClient) -> None:
    rows = create(client, topic("t"), topic("t"))

    assert [(row.name, row.error_code) for row in rows] == [("t", ErrorCode.INVALID_REQUEST)]
    assert metadata_of(client, "t", create=False).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_validate_only_creates_nothing(client: WireClient) -> None:
    fine, refused = create(client, topic("t", 2), topic("u", 0), check=True)

    assert (fine.error_code, fine.num_partitions, fine.topic_id) == (ErrorCode.NONE, 2, NO_ID)
    assert refused.error_code == ErrorCode.INVALID_PARTITIONS
    assert metadata_of(client, "t", create=False).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def delete(client: WireClient, *names: str, version: int = 5) -> list[Any]:
    return list(client.ask(DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000), version).responses)


def delete_by(client: WireClient, *topics: tuple[str | None, bytes]) -> list[Any]:
    rows = [DeleteTopicsRequest.Topic(name=name, topic_id=topic_id) for name, topic_id in topics]
    return list(client.ask(DeleteTopicsRequest(topics=rows, timeout_ms=1000), 6).responses)


def test_topics_are_deleted_by_name(client: WireClient) -> None:
    for version in range(1, 6):
        create_topic(client, "t")
        deleted, absent = delete(client, "t", "absent", version=version)
        assert (deleted.name, deleted.error_code) == ("t", ErrorCode.NONE)
        assert (absent.name, absent.error_code) == ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert metadata_of(client, "t", create=False).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_are_deleted_by_name_or_id_but_not_both(client: WireClient) -> None:
    ids = {name: create_topic(client, name).topic_id for name in ("a", "b", "c")}

    rows = delete_by(client, ("a", NO_ID), (None, ids["b"]), ("c", ids["c"]), (None, NO_ID), (None, b"?" * 16))

    assert [(row.name, row.topic_id, row.error_code) for row in rows] == [
        ("a", ids["a"], ErrorCode.NONE),
        ("b", ids["b"], ErrorCode.NONE),
        ("c", ids["c"], ErrorCode.INVALID_REQUEST),
        (None, NO_ID, ErrorCode.INVALID_REQUEST),
        (None, b"?" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_a_recreated_topic_is_empty_and_has_another_id(client: WireClient) -> None:
    before = create_topic(client, "t").topic_id
    produce(client, "t", b"old")
    delete(client, "t")

    assert create_topic(client, "t").topic_id != before
    assert values_of(fetch(client, "t", 0)) == []


def test_the_offsets_of_a_deleted_topic_are_dropped(running: RunningBroker) -> None:
    with running.client() as client:
        create_topic(client, "t")
        create_topic(client, "kept")
        for name in ("t", "kept"):
            assert (
                client.ask(commit_request("g", None, name, 7), 8).topics[0].partitions[0].error_code == ErrorCode.NONE
            )
    # After a restart the group's offsets are not in memory.
    running.restart()
    with running.client() as client:
        delete(client, "t")
        create_topic(client, "t")
        (group,) = client.ask(
            OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id="g", topics=None)]), 9
        ).groups
    assert [(row.name, row.partitions[0].committed_offset) for row in group.topics] == [("kept", 7)]


def test_an_internal_topic_cannot_be_deleted(client: WireClient) -> None:
    (row,) = delete(client, "__consumer_offsets")
    assert row.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert metadata_of(client, "__consumer_offsets").topics[0].error_code == ErrorCode.NONE


def test_deletion_can_be_disabled(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, delete_topic_enable="false") as running, running.client() as client:
        create_topic(client, "t")
        assert delete(client, "t", version=2)[0].error_code == ErrorCode.INVALID_REQUEST
        assert delete(client, "t", version=3)[0].error_code == ErrorCode.TOPIC_DELETION_DISABLED


def grow(client: WireClient, name: str, count: int, *replicas: list[int], version: int = 3, check: bool = False) -> Any:
    assignments = [CreatePartitionsRequest.Assignment(broker_ids=ids) for ids in replicas] or None
    asked = CreatePartitionsRequest.Topic(name=name, count=count, assignments=assignments)
    request = CreatePartitionsRequest(topics=[asked], timeout_ms=1000, validate_only=check)
    (row,) = client.ask(request, version).results
    return row.error_code


def test_partitions_are_added_and_can_be_used(client: WireClient) -> None:
    create_topic(client, "t")
    for version in CreatePartitionsRequest.VERSIONS:
        count = 2 + version
        assert grow(client, "t", count, version=version) == ErrorCode.NONE
        assert len(metadata_of(client, "t").topics[0].partitions) == count
        assert produce(client, "t", b"x", partition=count - 1).error_code == ErrorCode.NONE


def test_invalid_numbers_of_partitions_are_refused(client: WireClient) -> None:
    create_topic(client, "t", partitions=2)

    assert grow(client, "absent", 3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert grow(client, "t", 2) == ErrorCode.INVALID_PARTITIONS
    assert grow(client, "t", 1) == ErrorCode.INVALID_PARTITIONS
    assert grow(client, "t", 3, [9]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(client, "t", 4, [1]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(client, "t", 20_000) == ErrorCode.POLICY_VIOLATION
    assert grow(client, "__consumer_offsets", 51) == ErrorCode.INVALID_PARTITIONS
    assert grow(client, "t", 3, check=True) == ErrorCode.NONE
    assert len(metadata_of(client, "t").topics[0].partitions) == 2
    assert grow(client, "t", 3, [1]) == ErrorCode.NONE


def test_errors_across_the_topics_of_a_request_are_found_in_every_slice(
    running: RunningBroker,
) -> None:
    names = [f"many-{number}" for number in range(5 * CREATION.size)]
    wanted = [topic("a.b"), topic("twice"), topic("large", 9_000), *map(topic, names)]
    wanted += [topic("a_b"), topic("twice"), topic("too-large", 1_000), topic("last")]
    with running.client(timeout_s=30) as client:
        made = client.ask(CreateTopicsRequest(topics=wanted, timeout_ms=1_000)).topics
        assert [row.name for row in made] == ["a.b", "twice", "large", *names, "a_b", "too-large", "last"]
        assert {row.name: row.error_code for row in made if row.error_code} == {
            "twice": ErrorCode.INVALID_REQUEST,
            "a_b": ErrorCode.INVALID_TOPIC_EXCEPTION,
            "too-large": ErrorCode.POLICY_VIOLATION,
            "last": ErrorCode.POLICY_VIOLATION,
        }
        gone = client.ask(
            DeleteTopicsRequest(topic_names=["a.b", *names, "a.b", "none"], timeout_ms=1_000), 5
        ).responses
        assert [row.name for row in gone] == ["a.b", *names, "none"]
        assert {row.name: row.error_code for row in gone if row.error_code} == {
            "a.b": ErrorCode.INVALID_REQUEST,
            "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert {row.name for row in client.ask(MetadataRequest(topics=None), 9).topics} >= {"a.b", "large"}
        assert not {row.name for row in client.ask(MetadataRequest(topics=None), 9).topics} & {*names}
