"""ShareGroupHeartbeat on the core: the rules of Kafka 4.1's GroupMetadataManager, and its records."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cores.groups.events import EventType
from broker.cores.groups.settings import GroupSettings
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from tests.broker.cores.groups.consumer import clients as consumers
from tests.broker.cores.groups.consumer.clients import kinds
from tests.broker.cores.groups.share.clients import Client, V, beat, found, settle
from tests.broker.cores.groups.world import World, commit, join, leave, sync


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (beat("m", 0, subscribed_topic_names=None), "SubscribedTopicNames must be set in first request."),
        (beat("m", 0, subscribed_topic_names=[]), "SubscribedTopicNames must be set in first request."),
        (beat(" ", 0), "MemberId can't be empty."),
        (beat("m", 0, group=""), "GroupId can't be empty."),
        (beat("m", 0, rack_id=""), "RackId can't be empty."),
        (beat("m", -2), "MemberEpoch is invalid."),
    ],
)
def test_invalid_requests_are_refused(request_: Any, message: str) -> None:
    world = World()
    answer = world.answer(request_, V)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert world.core.group("g") is None


def test_a_subscription_that_is_too_large_to_be_stored_is_refused() -> None:
    world = World()
    answer = world.answer(beat("m", 0, *(f"{'t' * 240}-{n}" for n in range(5_000))), V)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        "The subscription is too large to be stored.",
    )
    assert world.core.group("g") is None


def test_a_heartbeat_that_changes_nothing_does_not_go_through_the_topics() -> None:
    class Watched(World):
        asked = 0

        def partition_count(self, topic: str) -> int | None:
            self.asked += 1
            return super().partition_count(topic)

    world = Watched()
    member = Client(world, "m", ("orders", "missing"))
    settle(member)
    asked = world.asked
    assert (member.beat().error_code, world.asked) == (0, asked)
    world.topics, world.changes = {**world.topics, "missing": 1}, world.changes + 1
    settle(member)
    assert "missing" in member.names


def test_records_are_those_of_kafka_in_its_order() -> None:
    world = World()
    first, second = Client(world, "m1"), Client(world, "m2")
    seen = []
    for step in (first.beat, first.beat, first.beat, second.beat, first.beat, second.leave, first.beat, first.leave):
        since = len(world.records)
        step()
        seen.append(kinds(world, since))
    assert seen == [
        [10, 11, 13, 12, 14, 15, 15],
        [11, 13, 12, 14],
        [],
        [10, 11, 13, 13, 12, 14],
        [14],
        [-14, -13, -10, 11],
        [11, 13, 12, 14],
        [-14, -13, -10, 11],
    ]
    since = len(world.records)
    world.answer(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert kinds(world, since) == [15, -12, -15, -11]
    assert world.core.group("g") is None
    assert not world.share_state.states
    assert not world.rows


def test_partitions_get_state_before_they_are_assigned() -> None:
    world = World()
    member = Client(world, "m1")
    assert member.beat().member_epoch == 1
    assert member.names == {}
    assert {key.partition: state for key, state in world.share_state.states.items()} == dict.fromkeys(range(3), (1, -1))
    answer = member.beat()
    assert answer.member_epoch == 2
    assert member.names == {"orders": [0, 1, 2]}
    assert member.beat().assignment is None


def test_failed_initialization_is_tried_again() -> None:
    world = World()
    world.share_state.failure = ErrorCode.FENCED_STATE_EPOCH
    member = Client(world, "m1")
    member.beat()
    assert member.beat().member_epoch == 1
    assert not found(world).partitions.initializing
    assert not found(world).partitions.initialized
    world.share_state.failure = ErrorCode.NONE
    member.beat()
    member.beat()
    assert member.names == {"orders": [0, 1, 2]}


def test_members_share_and_hand_over_at_once() -> None:
    world = World()
    first, second = Client(world, "m1"), Client(world, "m2")
    settle(first)
    assert second.beat().assignment is not None
    assert second.owned
    assert first.names == {"orders": [0, 1, 2]}, "it has not heard of the other one"
    first.beat()
    assert sorted(first.names["orders"] + second.names["orders"]) == [0, 1, 2]
    second.leave()
    answer = first.beat()
    assert answer.member_epoch == 5
    assert first.names == {"orders": [0, 1, 2]}


def test_more_members_than_partitions_share_partitions() -> None:
    world = World(topics={"orders": 1})
    members = [Client(world, f"m{number}") for number in range(3)]
    settle(*members)
    assert [member.names for member in members] == [{"orders": [0]}] * 3


@pytest.mark.parametrize(("epoch", "code"), [(1, 0), (2, 0), (0, 110), (3, 110)])
def test_only_the_epoch_and_the_one_before_are_accepted(epoch: int, code: int) -> None:
    world = World()
    settle(Client(world, "m1"))
    since = len(world.records)
    answer = world.answer(beat("m1", epoch), V)
    assert (answer.error_code, answer.member_epoch) == (code, 0 if code else 2)
    assert world.records[since:] == []
    if code:
        compared = "greater" if epoch else "smaller"
        assert f"has a {compared} member epoch ({epoch})" in answer.error_message


def test_unknown_groups_and_members() -> None:
    world = World()
    assert answered(world, beat("m", 1)) == (69, "Share group g not found.")
    assert answered(world, beat("m", -1)) == (69, "Group g not found.")
    settle(Client(world, "m1"))
    assert answered(world, beat("m", 1)) == (25, "Member m is not a member of group g.")
    assert answered(world, beat("m", -1)) == (25, "Member m is not a member of group g.")


def answered(world: World, request: Any) -> tuple[int, str]:
    answer = world.answer(request, V)
    return answer.error_code, answer.error_message


def test_a_group_has_one_type() -> None:
    world = World()
    world.ask(join(), 3)
    world.answer(consumers.beat("c", 0, group="c"), 1)
    for group in ("g", "c"):
        assert answered(world, beat("m", 0, group=group)) == (69, f"Group {group} is not a share group.")
    world.answer(beat("m", 0, group="s"), V)
    other: ConsumerGroupHeartbeatRequest = consumers.beat("c", 0, group="s")
    assert answered(world, other) == (69, "Group s is not a consumer group.")
    world.answer(beat("m", 0, group="empty"), V)
    world.answer(beat("m", -1, group="empty"), V)
    for group in ("s", "empty"):
        joined = world.answer(join(group_id=group), 9)
        assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        beaten = world.answer(consumers.beat("c", 0, group=group), 1)
        assert beaten.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert found(world, "empty").state_name == "Empty"
    committed = world.answer(commit({("orders", 0): 1}, group_id="s"), 9)
    assert committed.topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.answer(OffsetDeleteRequest(group_id="s", topics=[]), 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    listed = world.answer(ListGroupsRequest(states_filter=["stable"], types_filter=["Share"]), 5).groups
    assert [(row.group_id, row.protocol_type, row.group_type) for row in listed] == [("s", "share", "share")]


def test_requests_of_other_types_find_no_group() -> None:
    world = World()
    settle(Client(world, "m"))
    assert world.answer(sync("m", 1), 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.answer(leave("m"), 5).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (described,) = world.answer(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups
    assert (described.error_code, described.error_message) == (69, "Group g is not a consumer group.")
    world.answer(consumers.beat("c", 0, group="c"), 1)
    (described,) = world.answer(ShareGroupDescribeRequest(group_ids=["c"]), V).groups
    assert (described.error_code, described.error_message) == (69, "Group c is not a share group.")


def test_a_full_group_takes_no_other_member() -> None:
    world = World(GroupSettings(group_share_max_size=1))
    settle(Client(world, "m1"))
    message = "The share group has reached its maximum capacity of 1 members."
    assert answered(world, beat("m2", 0)) == (ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def test_silent_members_leave_after_their_session() -> None:
    world = World(configs={"g": {"share.session.timeout.ms": "50000", "share.heartbeat.interval.ms": "7000"}})
    first, second = Client(world, "m1"), Client(world, "m2")
    settle(first, second)
    assert first.beat().heartbeat_interval_ms == 7_000
    world.let_pass(30_000)
    first.beat()
    world.let_pass(30_000)
    assert list(found(world).members) == ["m1"]
    first.beat()
    assert first.names == {"orders": [0, 1, 2]}
    world.let_pass(50_000)
    assert found(world).state_name == "Empty"
    assert world.wake_at is not None
    world.let_pass(10 * 24 * 3_600_000)
    assert found(world).state_name == "Empty", "a share group stays until it is deleted"


def test_topics_that_are_created_and_grow_are_assigned() -> None:
    world = World()
    member = Client(world, "m1", ("orders", "later"))
    settle(member)
    assert member.names == {"orders": [0, 1, 2]}
    for partitions in (1, 2):
        world.topics["later"] = partitions
        world.changes += 1
        settle(member, rounds=2)
        assert member.names == {"orders": [0, 1, 2], "later": [*range(partitions)]}
    del world.topics["later"]
    world.changes += 1
    world.take(world.core.topic_deleted("later", world.now_ms, world.wall_ms))
    settle(member, rounds=1)
    assert member.names == {"orders": [0, 1, 2]}
    epoch = member.epoch
    settle(member)
    assert member.epoch == epoch


def test_a_topic_that_is_left_keeps_its_state_and_makes_epochs_without_events() -> None:
    """As in Kafka 4.1."""
    world = World()
    member = Client(world, "m1", ("orders", "clicks"))
    settle(member)
    member.beat("orders")
    epoch, events = member.epoch, len(world.events)
    settle(member, rounds=3)
    assert member.epoch == epoch + 3
    assert len(world.events) == events
    assert {named.topic for named in found(world).partitions.initialized.values()} == {"orders", "clicks"}


def test_events_tell_what_happened() -> None:
    world = World()
    first, second = Client(world, "m1"), Client(world, "m2")
    settle(first, rounds=2)
    second.beat()
    first.beat()
    world.let_pass(44_000)
    first.beat()
    world.let_pass(2_000)
    first.beat()
    first.leave()
    world.answer(DeleteGroupsRequest(groups_names=["g"]), 2)
    told = [(event.type, event.cause.value if event.cause else None, event.generation) for event in world.events]
    start, stable = EventType.REBALANCE_STARTED, EventType.STABLE
    assert told == [
        (start, "member joined", 1),
        (stable, "member joined", 1),
        (start, "topics changed", 2),
        (stable, "topics changed", 2),
        (start, "member joined", 3),
        (stable, "member joined", 3),
        (start, "session timed out", 4),
        (start, "session timed out", 5),
        (stable, "session timed out", 5),
        (EventType.EMPTY, "member left", 6),
        (EventType.DELETED, "group deleted", 6),
    ]
    assert [event.partitions_moved for event in world.events if event.type is stable] == [0, 0, 1, 1]
    assert world.events[3].reason == "partitions had no member"
    assert {event.group_type for event in world.events} == {"share"}
    assert [[*event.clients] for event in world.events] == [
        ["m1"],
        ["m1"],
        [],
        [],
        ["m2"],
        ["m2"],
        *[["m2"]] * 3,
        ["m1"],
        [],
    ]
    assert world.events[5].assignment == {"m1": {"orders": [1, 2]}, "m2": {"orders": [0]}}


def test_a_group_is_described() -> None:
    world = World()
    settle(Client(world, "m1", ("orders", "clicks")))
    request = ShareGroupDescribeRequest(group_ids=["g", "no", ""], include_authorized_operations=True)
    group, absent, invalid = world.answer(request, V).groups
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == (
        "Stable",
        2,
        2,
        "simple",
    )
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.client_id) == ("m1", 2, "c1")
    assert {row.topic_name: row.partitions for row in member.assignment.topic_partitions} == {
        "orders": [0, 1, 2],
        "clicks": [0],
    }
    assert group.authorized_operations == 3400
    assert (absent.error_code, absent.error_message) == (69, "Group no not found.")
    assert invalid.error_code == ErrorCode.INVALID_GROUP_ID
