"""Committed offsets of consumer groups: member epochs fence commits and fetches."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cores.groups.settings import GroupSettings
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.broker.cores.groups.consumer.clients import Client, found, kinds, settle
from tests.broker.cores.groups.world import World, commit, commit_in_transaction

STALE, UNKNOWN = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID
PLACE = ("orders", 0)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def member(world: World) -> Client:
    client = Client(world, "a")
    settle(client)
    client.beat(subscribed_topic_names=["orders", "clicks"])
    assert client.epoch == 2
    return client


def error(answer: Any) -> int:
    (code,) = {partition.error_code for topic in answer.topics for partition in topic.partitions}
    return int(code)


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "expected"),
    [
        ("a", 2, 9, 0),
        ("a", 1, 9, STALE),
        ("a", 3, 9, STALE),
        ("b", 2, 9, UNKNOWN),
        ("", -1, 9, UNKNOWN),
        ("a", 2, 8, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_commit_needs_the_epoch_of_the_member(
    world: World, member: Client, member_id: str, epoch: int, version: int, expected: int
) -> None:
    assert error(world.answer(commit({PLACE: 7}, member_id, epoch), version)) == expected
    assert bool(found(world).offsets) == (not expected)


@pytest.mark.parametrize(
    ("member_id", "epoch", "expected"),
    [("a", 2, 0), (None, -1, 0), ("a", 1, STALE), ("b", 2, UNKNOWN), (None, 2, UNKNOWN)],
)
def test_a_fetch_needs_the_epoch_of_the_member(
    world: World, member: Client, member_id: str | None, epoch: int, expected: int
) -> None:
    world.answer(commit({PLACE: 7}, "a", 2), 9)
    group = OffsetFetchRequest.Group(group_id="g", member_id=member_id, member_epoch=epoch, topics=None)
    (answered,) = world.answer(OffsetFetchRequest(groups=[group]), 9).groups
    assert answered.error_code == expected
    assert [row.partitions[0].committed_offset for row in answered.topics] == ([] if expected else [7])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"member_id": "a", "generation_id": 2}, 0),
        ({"member_id": "a", "generation_id": 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "b", "generation_id": 2}, UNKNOWN),
        ({}, 0),
    ],
)
def test_a_transaction_commits_in_the_epoch_of_the_member(
    world: World, member: Client, fields: dict[str, Any], expected: int
) -> None:
    assert error(world.answer(commit_in_transaction({PLACE: 7}, **fields), 3)) == expected


def test_an_empty_group_takes_commits_without_an_epoch(world: World, member: Client) -> None:
    member.leave()
    assert error(world.answer(commit({PLACE: 9}), 8)) == 0
    assert found(world).offsets["orders"][0].offset == 9


def test_offsets_of_subscribed_topics_are_not_deleted(world: World) -> None:
    client = Client(world, "a")
    settle(client)
    world.answer(commit({PLACE: 7, ("clicks", 0): 8}, "a", 1), 9)
    topics = [
        OffsetDeleteRequest.Topic(name=name, partitions=[OffsetDeleteRequest.Partition(partition_index=0)])
        for name in ("orders", "clicks")
    ]
    answer = world.answer(OffsetDeleteRequest(group_id="g", topics=topics), 0)
    errors = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert (answer.error_code, errors) == (0, {"orders": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "clicks": 0})
    assert list(found(world).offsets) == ["orders"]


def test_offsets_expire_by_their_age_unless_a_member_subscribes_to_the_topic() -> None:
    world = World(GroupSettings(offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000))
    client = Client(world, "a")
    settle(client)
    world.answer(commit({PLACE: 7, ("clicks", 0): 8}, "a", 1), 9)
    for _ in range(8):
        world.let_pass(10_000)
        client.beat()
    assert list(found(world).offsets) == ["orders"]
    client.leave()
    world.let_pass(20_000)
    assert world.core.group("g") is None


def test_an_empty_group_is_deleted_with_kafkas_tombstones(world: World, member: Client) -> None:
    request = DeleteGroupsRequest(groups_names=["g"])
    assert world.answer(request, 2).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    since = len(world.records)
    assert world.answer(request, 2).results[0].error_code == 0
    assert kinds(world, since) == [-6, -4, -3]
    assert (world.core.group("g"), world.rows) == (None, {})
