"""Static members of consumer groups: they keep their place for a session, and take it up under another member id."""

from __future__ import annotations

import pytest

from broker.cores.groups.events import EventType
from broker.protocol.errors import ErrorCode
from tests.broker.cores.groups.consumer.clients import Client, V, beat, found, kinds, settle
from tests.broker.cores.groups.world import World


@pytest.fixture
def world() -> World:
    return World()


def static(world: World, member_id: str, instance: str) -> Client:
    return Client(world, member_id, fields={"instance_id": instance})


def test_a_static_member_that_comes_back_keeps_its_partitions(world: World) -> None:
    first, other = static(world, "a1", "a"), Client(world, "b")
    settle(first, other)
    names, epoch = first.names, first.epoch
    since = len(world.records)
    left = first.leave(-2)
    assert (left.error_code, left.member_epoch, kinds(world, since)) == (0, -2, [8])
    assert found(world).members["a1"].current.member_epoch == -2
    again = static(world, "a2", "a")
    since = len(world.records)
    assert again.beat().error_code == 0
    assert kinds(world, since) == [-8, -7, -5, 5, 7, 8, 8]
    assert (again.names, again.epoch, list(found(world).members)) == (names, epoch, ["b", "a2"])
    assert world.events[-1].type is EventType.MEMBER_REPLACED
    assert (world.events[-1].joined, world.events[-1].left) == (("a2",), ("a1",))
    assert other.beat().assignment is None
    # The session of the former id is over without consequences.
    for _ in range(4):
        world.let_pass(20_000)
        settle(again, other, rounds=1)
    assert found(world).generation == epoch


def test_an_instance_id_that_is_in_use_is_not_released(world: World) -> None:
    settle(static(world, "a1", "a"))
    refused = world.answer(beat("a2", 0, instance_id="a"), V)
    assert refused.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert refused.error_message == (
        "Static member a2 with instance id a cannot join the group because the instance id is owned by a1 member."
    )


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_another_member_id_is_fenced(world: World, epoch: int) -> None:
    settle(static(world, "a1", "a"))
    fenced = world.answer(beat("a2", epoch, instance_id="a"), V)
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
    unknown = world.answer(beat("a1", epoch, instance_id="z"), V)
    assert (unknown.error_code, unknown.error_message) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        "Instance id z is unknown.",
    )


def test_a_static_member_that_does_not_come_back_is_removed_after_its_session(world: World) -> None:
    first, other = static(world, "a1", "a"), Client(world, "b")
    settle(first, other)
    first.leave(-2)
    world.let_pass(30_000)
    other.beat()
    world.let_pass(15_000)
    assert list(found(world).members) == ["b"]
    settle(other)
    assert other.names == {"orders": [0, 1, 2]}


def test_a_static_member_that_leaves_for_good_is_removed_at_once(world: World) -> None:
    first = static(world, "a1", "a")
    settle(first)
    first.leave()
    assert (list(found(world).members), found(world).static_members) == ([], {})


def test_a_refused_return_leaves_the_session_of_the_former_id_running(world: World) -> None:
    first = static(world, "a1", "a")
    settle(first)
    first.leave(-2)
    refused = world.answer(beat("a2", 0, instance_id="a", subscribed_topic_regex="("), V)
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    world.let_pass(45_000)
    assert list(found(world).members) == []


@pytest.mark.parametrize("epoch", [0, -1, -2])
def test_a_former_instance_id_of_a_member_that_is_gone_cannot_be_used(world: World, epoch: int) -> None:
    """As in Kafka, which keeps both instance ids of a member that joins again with another one."""
    other = Client(world, "b")
    settle(static(world, "a1", "a"), other)
    again = static(world, "a1", "z")
    settle(again, other)
    assert again.leave(-1).error_code == 0
    refused = world.answer(beat("a2", epoch, instance_id="a"), V)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member a1 is not a member of group {found(world).group_id}.",
    )
    assert world.answer(beat("a2", 0, instance_id="z"), V).error_code == 0
