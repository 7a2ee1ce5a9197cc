"""Group requests: unknown partitions, loading of offsets, and answers that depend on the version."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cores.core import RequestContext
from broker.cores.groups.coordinator import HANDLERS
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.server.handlers.groups import REQUESTS
from tests.broker.cores.groups.world import World, commit, fetch_all, fetched, heartbeat, join, leave, sync


def codes(response: Any) -> dict[tuple[str, int], int]:
    return {(t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions}


def deletion(partitions: dict[str, list[int]], group_id: str = "g") -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequest.Topic(
                name=name, partitions=[OffsetDeleteRequest.Partition(partition_index=index) for index in indexes]
            )
            for name, indexes in partitions.items()
        ],
    )


def test_the_server_declares_every_request_that_the_coordinator_handles() -> None:
    assert {declared.request for declared in REQUESTS} == HANDLERS.keys()


# ---- topics ------------------------------------------------------------------------------------------------------


def test_a_commit_refuses_unknown_partitions_and_accepts_the_others() -> None:
    world = World()
    offsets = {("orders", 2): 1, ("orders", 3): 2, ("nothing", 0): 3, ("orders", -1): 4}
    assert codes(world.answer(commit(offsets), 8)) == {
        ("orders", 2): ErrorCode.NONE,
        ("orders", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", 2): 1}


def test_a_commit_of_only_unknown_partitions_creates_no_group() -> None:
    world = World()
    world.answer(commit({("nothing", 0): 1}), 8)
    assert world.core.group("g") is None
    assert world.records == []


def test_a_group_error_and_unknown_partitions_are_reported_together() -> None:
    world = World()
    answered = codes(world.answer(commit({("orders", 0): 1, ("nothing", 0): 1}, "stranger", 5), 9))
    assert answered == {
        ("orders", 0): ErrorCode.GROUP_ID_NOT_FOUND,
        ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_offset_delete_checks_the_group_before_partitions() -> None:
    world = World()
    absent = world.answer(deletion({"orders": [0, 9]}), 0)
    assert (absent.error_code, absent.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    world.answer(commit({("orders", 0): 1}), 8)
    answered = world.answer(deletion({"orders": [0, 9], "nothing": [1]}), 0)
    assert codes(answered) == {
        ("orders", 0): ErrorCode.NONE,
        ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nothing", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert fetched(world.answer(fetch_all(), 7)) == {}


def test_deleting_a_topic_drops_its_offsets_in_every_group_and_no_others() -> None:
    world = World()
    for group_id in ("g", "h"):
        world.answer(commit({("orders", 0): 1, ("orders", 2): 2, ("clicks", 0): 3}, group_id=group_id), 8)
    world.start()
    world.take(world.core.topic_deleted("orders", world.now_ms, world.wall_ms))
    assert all(fetched(world.answer(fetch_all(group_id), 7)) == {("clicks", 0): 3} for group_id in ("g", "h"))
    world.start()
    assert fetched(world.answer(fetch_all(), 7)) == {("clicks", 0): 3}


# ---- loading -----------------------------------------------------------------------------------------------------


def restarted_with_offsets() -> World:
    world = World()
    member = world.generation(1)[0]
    world.answer(commit({("orders", 0): 5}, member, 1), 8)
    world.answer(commit({("orders", 1): 6}, group_id="simple"), 8)
    world.start()
    world.loads.clear()
    return world


def test_a_group_is_loaded_once_before_the_first_request_that_needs_its_offsets() -> None:
    world = restarted_with_offsets()
    world.answer(heartbeat("c1-1", 1), 4)
    world.answer(DescribeGroupsRequest(groups=["g", "simple"]), 5)
    world.answer(ListGroupsRequest(), 4)
    world.answer(leave("stranger"), 4)
    assert world.loads == []
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequest.Group(group_id=name, topics=None) for name in ("g", "g", "simple")]
    )
    answered = world.answer(request, 8)
    assert world.loads == ["g", "simple"]
    assert [fetched(group) for group in answered.groups] == [{("orders", 0): 5}, {("orders", 0): 5}, {("orders", 1): 6}]
    world.answer(request, 8)
    assert world.loads == ["g", "simple"]


def test_an_unknown_group_is_not_loaded() -> None:
    world = restarted_with_offsets()
    world.answer(DescribeGroupsRequest(groups=["absent"]), 5)
    world.answer(fetch_all("absent"), 7)
    world.answer(commit({("orders", 0): 5}, group_id="made now"), 8)
    assert world.loads == []


def test_a_group_with_only_offsets_is_listed_and_described_without_loading() -> None:
    world = restarted_with_offsets()
    listed = world.answer(ListGroupsRequest(states_filter=["EMPTY"]), 4)
    assert [(group.group_id, group.protocol_type) for group in listed.groups] == [("simple", "")]
    described = world.answer(DescribeGroupsRequest(groups=["simple"]), 6)
    assert (described.groups[0].error_code, described.groups[0].group_state) == (0, "Empty")
    assert world.loads == []


def test_deleting_an_unloaded_group_removes_everything_from_the_store() -> None:
    world = restarted_with_offsets()
    assert (
        world.answer(DeleteGroupsRequest(groups_names=["simple", "simple"]), 2).results[0].error_code == ErrorCode.NONE
    )
    assert all(b"simple" not in key for key in world.rows)
    world.start()
    assert world.core.group("simple") is None


def test_a_commit_after_a_restart_does_not_hide_the_offsets_in_the_store() -> None:
    world = restarted_with_offsets()
    world.answer(commit({("orders", 2): 7}, "c1-1", 1), 8)
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", 0): 5, ("orders", 2): 7}


# ---- versions ----------------------------------------------------------------------------------------------------


def test_sync_v5_without_protocol_is_refused_before_all_other_checks() -> None:
    world = World()
    for group_id in ("", "absent"):
        request = SyncGroupRequest(
            group_id=group_id, generation_id=1, member_id="m", protocol_type="consumer", assignments=[]
        )
        assert world.answer(request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.answer(sync("m", 1, group_id=""), 4).error_code == ErrorCode.INVALID_GROUP_ID
    assert world.answer(sync("m", 1, group_id="absent"), 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("version", "protocol"), [(6, ""), (7, None)])
def test_a_refused_join_has_an_empty_or_null_protocol_by_version(version: int, protocol: str | None) -> None:
    refused = World().answer(join("stranger"), version)
    assert (refused.error_code, refused.protocol_name, refused.member_id) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        protocol,
        "stranger",
    )


@pytest.mark.parametrize(
    ("version", "error", "state"), [(5, ErrorCode.NONE, "Dead"), (6, ErrorCode.GROUP_ID_NOT_FOUND, "Dead")]
)
def test_an_absent_group_is_dead_or_an_error_by_version(version: int, error: int, state: str) -> None:
    found = World().answer(DescribeGroupsRequest(groups=["absent"]), version).groups[0]
    assert (found.error_code, found.group_state) == (error, state)


def test_leave_has_one_error_up_to_v2_and_one_per_member_from_v3() -> None:
    world = World()
    member = world.generation(1)[0]
    assert (
        world.answer(LeaveGroupRequest(group_id="g", member_id="stranger"), 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    )
    left = world.answer(leave("stranger", member, member), 3)
    assert left.error_code == ErrorCode.NONE
    assert [found.error_code for found in left.members] == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("count", [100, 2_000])
def test_many_unknown_topics_take_linear_time(count: int) -> None:
    world = World()
    Counted.compared = 0
    request = commit({("orders", 0): 1, **{(Counted(f"t{number}"), 0): 1 for number in range(count)}})
    context = RequestContext(1, 8, "c", "/127.0.0.1", "User:ANONYMOUS", world.wall_ms)
    Counted.compared = 0
    effects = world.core.handle(request, context, world.now_ms)
    assert len(codes(effects.replies[0].response)) == count + 1
    assert Counted.compared <= 10 * count
