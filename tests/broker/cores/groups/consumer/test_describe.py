"""What administrators see of consumer groups, and the events that explain them."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cores.groups.events import Cause, EventType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from tests.broker.cores.groups.consumer.clients import Client, settle
from tests.broker.cores.groups.world import World, commit


@pytest.fixture
def world() -> World:
    return World()


def described(world: World, group: str = "g") -> Any:
    (answer,) = world.answer(ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups
    return answer


def parts(assignment: Any) -> dict[str, list[int]]:
    return {row.topic_name: row.partitions for row in assignment.topic_partitions}


def test_a_group_is_described_in_the_middle_of_a_reconciliation(world: World) -> None:
    first = Client(world, "a", fields={"rack_id": "r1", "server_assignor": "range"})
    first.beat()
    Client(world, "b").beat()
    group = described(world)
    assert (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch) == (0, "Reconciling", 2, 2)
    assert group.assignor_name == "range"
    a, b = group.members
    assert (a.member_id, a.rack_id, a.member_epoch, a.client_id, a.client_host) == ("a", "r1", 1, "c1", "/127.0.0.1")
    assert (a.subscribed_topic_names, a.subscribed_topic_regex, a.member_type) == (["orders"], "", 1)
    assert (parts(a.assignment), parts(a.target_assignment)) == ({"orders": [0, 1, 2]}, {"orders": [0, 1]})
    assert (parts(b.assignment), parts(b.target_assignment)) == ({}, {"orders": [2]})


@pytest.mark.parametrize(
    ("group", "message"), [("none", "Group none not found."), ("simple", "Group simple is not a consumer group.")]
)
def test_other_groups_are_not_found(world: World, group: str, message: str) -> None:
    world.answer(commit({("orders", 0): 1}, group_id="simple"), 8)
    answer = described(world, group)
    assert (answer.error_code, answer.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, message)


def test_a_group_has_a_name(world: World) -> None:
    assert described(world, "").error_code == ErrorCode.INVALID_GROUP_ID


def test_deleted_topics_are_left_out_of_the_description(world: World) -> None:
    member = Client(world, "a")
    settle(member)
    world.topics.clear()
    world.changes += 1
    (found,) = described(world).members
    assert (parts(found.assignment), parts(found.target_assignment)) == ({}, {})


def test_groups_are_listed_with_their_type_and_state(world: World) -> None:
    settle(Client(world, "a"))
    world.generation(1, "h")

    def listed(**filters: list[str]) -> list[tuple[str, str, str, str]]:
        rows = world.answer(ListGroupsRequest(**filters), 5).groups
        return [(row.group_id, row.protocol_type, row.group_state, row.group_type) for row in rows]

    consumer, classic = ("g", "consumer", "Stable", "consumer"), ("h", "consumer", "Stable", "classic")
    assert sorted(listed()) == [consumer, classic]
    assert listed(types_filter=["Consumer"]) == [consumer]
    assert listed(types_filter=["classic"], states_filter=["stable"]) == [classic]
    assert listed(states_filter=["reconciling"]) == []


@pytest.mark.parametrize(("version", "error"), [(5, 0), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_the_classic_description_says_that_there_is_no_such_group(world: World, version: int, error: int) -> None:
    settle(Client(world, "a"))
    (answer,) = world.answer(DescribeGroupsRequest(groups=["g"]), version).groups
    assert (answer.group_state, answer.error_code, answer.members) == ("Dead", error, [])
    expected = "Group g is not a classic group." if error else None
    assert getattr(answer, "error_message", None) == expected


def test_events_say_why_the_group_changed_and_who_got_what(world: World) -> None:
    first, second = Client(world, "a"), Client(world, "b")
    settle(first)
    settle(first, second)
    world.let_pass(40_000)
    first.beat()
    world.let_pass(40_000)
    settle(first)
    first.leave()
    started, stable = EventType.REBALANCE_STARTED, EventType.STABLE
    joined, timed_out = Cause.MEMBER_JOINED, Cause.SESSION_TIMED_OUT
    shown = [(event.type, event.cause, event.generation, event.joined, event.left) for event in world.events]
    assert shown == [
        (started, joined, 1, ("a",), ()),
        (stable, joined, 1, ("a",), ()),
        (started, joined, 2, ("b",), ()),
        (stable, joined, 2, ("b",), ()),
        (started, timed_out, 3, (), ("b",)),
        (stable, timed_out, 3, (), ("b",)),
        (EventType.EMPTY, Cause.MEMBER_LEFT, 4, (), ("a",)),
    ]
    ends = [event for event in world.events if event.type is stable]
    assert [event.assignment for event in ends] == [
        {"a": {"orders": [0, 1, 2]}},
        {"a": {"orders": [0, 1]}, "b": {"orders": [2]}},
        {"a": {"orders": [0, 1, 2]}},
    ]
    assert [event.partitions_moved for event in ends] == [0, 1, 1]
