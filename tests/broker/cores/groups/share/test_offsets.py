"""The start offsets of share partitions: described, altered and deleted."""

from __future__ import annotations

from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from broker.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from broker.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from tests.broker.cores.groups.consumer.clients import kinds
from tests.broker.cores.groups.share.clients import Client, beat, found, settle
from tests.broker.cores.groups.world import World

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def world() -> World:
    """A group that has left, after it read both topics."""
    world = World()
    member = Client(world, "m1", ("orders", "clicks"))
    settle(member)
    member.leave()
    return world


def offsets(world: World, topics: dict[str, list[int]] | None = None, group: str = "g") -> dict[str, Any]:
    asked = None
    if topics is not None:
        asked = [DescribeShareGroupOffsetsRequest.Topic(topic_name=name, partitions=topics[name]) for name in topics]
    request = DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequest.Group(group_id=group, topics=asked)]
    )
    (answer,) = world.answer(request, 0).groups
    assert answer.error_code == 0
    return {
        topic.topic_name: {row.partition_index: row.start_offset for row in topic.partitions} for topic in answer.topics
    }


def alter(world: World, offsets: dict[str, dict[int, int]], group: str = "g") -> Any:
    topics = [
        AlterShareGroupOffsetsRequest.Topic(
            topic_name=name,
            partitions=[
                AlterShareGroupOffsetsRequest.Partition(partition_index=number, start_offset=offset)
                for number, offset in starts.items()
            ],
        )
        for name, starts in offsets.items()
    ]
    return world.answer(AlterShareGroupOffsetsRequest(group_id=group, topics=topics), 0)


def delete(world: World, *topics: str, group: str = "g") -> Any:
    names = [DeleteShareGroupOffsetsRequest.Topic(topic_name=name) for name in topics]
    return world.answer(DeleteShareGroupOffsetsRequest(group_id=group, topics=names), 0)


def test_offsets_are_described(world: World) -> None:
    assert offsets(world) == {"orders": {0: -1, 1: -1, 2: -1}, "clicks": {0: -1}}
    assert offsets(world, {"orders": [2, 9], "no": [0]}) == {"no": {0: -1}, "orders": {2: -1, 9: -1}}
    assert offsets(world, group="none") == {}


def test_offsets_are_altered(world: World) -> None:
    since = len(world.records)
    answer = alter(world, {"orders": {0: -2, 1: 50, 7: 1}, "no": {0: 1}})
    assert answer.error_code == 0
    rows = [
        (topic.topic_name, row.partition_index, row.error_code)
        for topic in answer.responses
        for row in topic.partitions
    ]
    assert rows == [
        ("orders", 0, ErrorCode.INVALID_REQUEST),
        ("orders", 1, 0),
        ("orders", 7, UNKNOWN),
        ("no", 0, UNKNOWN),
    ]
    assert kinds(world, since) == [15, 15]
    assert offsets(world)["orders"] == {0: -1, 1: 50, 2: -1}
    assert {key.partition: state for key, state in world.share_state.states.items() if state[1] != -1} == {1: (3, 50)}


def test_offsets_are_deleted_and_begin_again(world: World) -> None:
    alter(world, {"clicks": {0: 7}})
    answer = delete(world, "clicks", "no")
    assert [(row.topic_name, row.error_code) for row in answer.responses] == [("clicks", 0), ("no", UNKNOWN)]
    assert offsets(world) == {"orders": {0: -1, 1: -1, 2: -1}}
    (again,) = delete(world, "clicks").responses
    assert (again.error_code, again.error_message) == (UNKNOWN, "There is no offset information to delete.")
    member = Client(world, "m2", ("clicks",))
    settle(member)
    assert member.names == {"clicks": [0]}
    assert offsets(world)["clicks"] == {0: -1}


def test_offsets_of_a_topic_that_was_never_read_are_set(world: World) -> None:
    world.topics["later"] = 2
    alter(world, {"later": {1: 5}})
    assert offsets(world)["later"] == {1: 5}
    member = Client(world, "m2", ("later",))
    settle(member)
    assert member.names == {"later": [0, 1]}
    assert offsets(world)["later"] == {0: -1, 1: 5}


@pytest.mark.parametrize(
    "change",
    [
        lambda world, group: alter(world, {"orders": {0: 1}}, group),
        lambda world, group: delete(world, "orders", group=group),
    ],
)
def test_offsets_change_only_in_empty_share_groups(world: World, change: Any) -> None:
    assert change(world, "").error_code == ErrorCode.INVALID_GROUP_ID
    assert change(world, "none").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    settle(Client(world, "m2"))
    before = found(world).partitions
    answer = change(world, "g")
    assert (answer.error_code, answer.responses) == (ErrorCode.NON_EMPTY_GROUP, [])
    assert found(world).partitions is before


def test_offsets_of_a_group_without_state_are_not_deleted(world: World) -> None:
    world.answer(beat("m", 0, "no-such-topic", group="new"), 1)
    world.answer(beat("m", -1, group="new"), 1)
    since = len(world.records)
    answer = delete(world, "orders", group="new")
    assert (answer.error_code, answer.responses) == (0, [])
    assert world.records[since:] == []
