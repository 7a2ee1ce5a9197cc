"""Group events: what they report and when, how moved partitions are counted, and their limits."""

from __future__ import annotations

import json
from typing import Any

from broker.cores.groups.classic.assignments import DECODED_BYTES
from broker.cores.groups.events import (
    ASSIGNMENT_CHARACTERS,
    NAMED_CHARACTERS,
    REASON_CHARACTERS,
    Cause,
    EventType,
    GroupEvent,
    PendingEvent,
    compact,
    to_json,
)
from broker.protocol.consumer_protocol import ConsumerProtocolAssignment, encode_blob
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from tests.broker.cores.groups.world import World, commit, join, leave, sync


def share(*partitions: int, topic: str = "orders", padding: int = 0) -> bytes:
    row = ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=list(partitions))
    return encode_blob(ConsumerProtocolAssignment(assigned_partitions=[row], user_data=bytes(padding)))


def rebalanced(world: World, shares: list[bytes], **fields: Any) -> GroupEvent:
    """The last event of a rebalance of the present members with these assignments."""
    group = world.group()
    world.answer(TriggerRebalanceRequest(groups=[TriggerRebalanceRequest.Group(group_id="g")]), 0)
    ids = list(group.members)
    for member_id in ids:
        world.ask(join(member_id, **fields), 3)
    given = [
        SyncGroupRequest.Assignment(member_id=member_id, assignment=blob)
        for member_id, blob in zip(ids, shares, strict=True)
    ]
    leader = group.leader
    assert leader is not None
    world.ask(SyncGroupRequest(group_id="g", generation_id=group.generation, member_id=leader, assignments=given), 3)
    event = world.events[-1]
    assert event.type is EventType.STABLE
    return event


def test_partitions_that_change_owner_are_counted_and_first_owners_are_not() -> None:
    world = World()
    world.generation(2)
    assert (
        rebalanced(world, [share(0, 1), share(2)]).partitions_moved is None
    )  # the assignments before were not those of consumers
    assert rebalanced(world, [share(0, 1), share(2)]).partitions_moved == 0
    assert rebalanced(world, [share(0), share(1, 2)]).partitions_moved == 1
    assert rebalanced(world, [share(1, 2), share(0)]).partitions_moved == 3
    assert rebalanced(world, [share(1, 2), b""]).partitions_moved == 1
    assert rebalanced(world, [share(1, 2), share(0)]).partitions_moved == 0


def test_moves_are_unknown_for_other_protocols_and_large_assignments() -> None:
    world = World()
    world.generation(1, protocol_type="connect")
    assert rebalanced(world, [share(0)], protocol_type="connect").partitions_moved is None
    world = World()
    world.generation(1)
    room = DECODED_BYTES - len(share(0)) - len(share(0))
    rebalanced(world, [share(0)])
    assert rebalanced(world, [share(0, padding=room)]).partitions_moved == 0
    rebalanced(world, [share(0)])
    assert rebalanced(world, [share(0, padding=room + 1)]).partitions_moved is None


def test_only_a_stable_event_has_the_assignment() -> None:
    world = World()
    first, second = world.generation(2)
    row = ConsumerProtocolAssignment.TopicPartition
    rows = [
        row(topic="orders", partitions=[2, 0]),
        row(topic="views", partitions=[7]),
        row(topic="orders", partitions=[1]),
    ]
    event = rebalanced(world, [encode_blob(ConsumerProtocolAssignment(assigned_partitions=rows)), b""])
    assert json.loads(to_json(event))["assignment"] == {first: {"orders": [2, 0, 1], "views": [7]}, second: {}}
    world.answer(leave(second), 3)
    assert world.events[-1].type is EventType.REBALANCE_STARTED
    assert json.loads(to_json(world.events[-1]))["assignment"] is None


def test_unreadable_assignments_and_those_of_other_protocols_are_left_out() -> None:
    world = World()
    world.generation(1, protocol_type="connect")
    assert rebalanced(world, [share(0)], protocol_type="connect").assignment is None
    world = World()
    world.generation(2)
    assert rebalanced(world, [share(0), b"\0\1not an assignment"]).assignment is None
    assert rebalanced(world, [share(0), share(1)]).assignment is not None


def test_an_assignment_is_complete_up_to_its_limit_and_left_out_beyond() -> None:
    for members in (1, 3):
        bare = {f"c{n}-{n}": {"": [0]} for n in range(1, members + 1)}
        room = ASSIGNMENT_CHARACTERS - len(compact(bare))
        for length, fits in ((room, True), (room + 1, False)):
            world = World()
            world.generation(members)
            shares = [share(0, topic="t" * length if n == 0 else "") for n in range(members)]
            event = rebalanced(world, shares)
            assert (event.assignment is not None) == fits
            assert event.assignment is None or len(compact(event.assignment)) == ASSIGNMENT_CHARACTERS
    world = World()
    world.generation(1)
    padding = DECODED_BYTES - len(share(0))
    assert rebalanced(world, [share(0, padding=padding)]).assignment == {"c1-1": {"orders": [0]}}
    assert rebalanced(world, [share(0, padding=padding + 1)]).assignment is None


def test_a_rebalance_names_as_cause_that_a_client_left_before_it_joined() -> None:
    for completes in (True, False):
        world = World()
        (leader,) = world.generation(1)
        if not completes:
            world.answer(TriggerRebalanceRequest(groups=[TriggerRebalanceRequest.Group(group_id="g")]), 0)
            world.ask(join(leader), 3)
        pending = world.answer(join(), 4, client="c2").member_id
        world.answer(leave(pending), 3)
        started = world.events[-1]
        assert (started.type, started.cause) == (EventType.REBALANCE_STARTED, Cause.MEMBER_LEFT)
        assert (started.left, "had not joined" in started.reason) == ((), True)


def test_the_cause_of_a_member_that_leaves_precedes_that_of_a_client_that_has_not_joined() -> None:
    world = World()
    _, second = world.generation(2)
    pending = world.answer(join(), 4, client="c3").member_id
    gone = [
        LeaveGroupRequest.Member(member_id=second, reason="member was removed by an admin"),
        LeaveGroupRequest.Member(member_id=pending, reason="bye"),
    ]
    world.answer(LeaveGroupRequest(group_id="g", members=gone), 5)
    started = world.events[-1]
    assert (started.cause, started.left) == (Cause.REQUESTED_BY_ADMIN, (second,))


def test_events_report_deletion_and_rejected_commits() -> None:
    world = World()
    world.generation(1)
    for generation in (7, 8):
        world.answer(commit({("orders", 0): 1}, member_id="c1-1", generation=generation), 8)
    world.answer(leave("c1-1"), 3)
    world.answer(DeleteGroupsRequest(groups_names=["g"]), 2)
    started, empty, deleted = world.events[-3:]
    assert [event.type for event in (started, empty, deleted)] == [
        EventType.REBALANCE_STARTED,
        EventType.EMPTY,
        EventType.DELETED,
    ]
    assert [event.commits_rejected for event in (started, empty, deleted)] == [2, 0, 0]
    assert (empty.cause, empty.left, deleted.cause) == (Cause.MEMBER_LEFT, ("c1-1",), Cause.GROUP_DELETED)


def test_a_group_that_empties_before_its_assignment_has_no_complete_ms() -> None:
    world = World()
    ticket = world.ask(join(), 3)
    world.let_pass(500)
    world.answer(leave(world.answers[ticket].member_id), 3)
    empty = world.events[-1]
    assert (empty.type, empty.prepare_ms, empty.complete_ms) == (EventType.EMPTY, 0, None)


def test_reasons_are_cut_to_the_length_that_kafkas_clients_send() -> None:
    for sent, reported in ((REASON_CHARACTERS, REASON_CHARACTERS), (REASON_CHARACTERS + 1, REASON_CHARACTERS)):
        world = World()
        (member_id,) = world.generation(1)
        world.answer(leave(member_id, reason="x" * sent), 5)
        assert world.events[-1].reason == "x" * reported


def test_an_event_names_members_up_to_its_limit_and_counts_them_all() -> None:
    world = World()
    name = "c" * (NAMED_CHARACTERS // 4 - 2)  # with the id made from it: a quarter of the room
    for _ in range(5):
        world.ask(join(), 3, name)
    ids = list(world.group().members)
    assert [len(member_id) for member_id in ids] == [NAMED_CHARACTERS // 4] * 5
    event = world.events[-1]
    assert (event.type, event.joined, event.joined_count) == (EventType.REBALANCE_STARTED, (), 2)
    for member_id in ids:
        world.ask(join(member_id), 3)
    world.ask(
        SyncGroupRequest(group_id="g", generation_id=world.group().generation, member_id=ids[0], assignments=[]), 3
    )
    event = world.events[-1]
    assert (event.type, event.joined, event.joined_count) == (EventType.STABLE, tuple(ids[:4]), 5)


def test_each_named_member_that_left_has_its_cause_and_the_rest_is_counted() -> None:
    world = World()
    name = "c" * (NAMED_CHARACTERS // 4 - 2)
    for _ in range(6):
        world.ask(join(rebalance_timeout_ms=5_000), 3, name)
    ids = list(world.group().members)
    for member_id in ids:
        world.ask(join(member_id, rebalance_timeout_ms=5_000), 3)
    world.answer(leave(ids[0]), 3)
    world.ask(join(ids[1], rebalance_timeout_ms=5_000), 3)
    world.let_pass(5_000)
    world.ask(sync(ids[1], world.group().generation), 3)
    event = world.events[-1]
    assert (event.type, event.left, event.left_count) == (EventType.STABLE, (ids[0], *ids[2:5]), 5)
    assert event.left_causes == (Cause.MEMBER_LEFT, *[Cause.REBALANCE_TIMED_OUT] * 3)
    assert (event.absent, event.absent_count) == (tuple(ids[2:6]), 4)
    assert event.cause is Cause.MEMBER_LEFT


def test_members_are_absent_only_if_the_rebalance_timeout_expires() -> None:
    for last_waits_ms, absent in ((4_999, ()), (5_000, ("c2-2",))):
        world = World()
        ids = world.generation(2, rebalance_timeout_ms=5_000)
        world.ask(join(ids[0], rebalance_timeout_ms=5_000), 3)
        world.let_pass(last_waits_ms)
        world.ask(join(ids[1], rebalance_timeout_ms=5_000), 3)
        world.ask(sync(ids[0], world.group().generation), 3)
        assert (world.events[-1].type, world.events[-1].absent) == (EventType.STABLE, absent)


def test_an_event_with_every_field_at_its_limit_is_small() -> None:
    member_ids = tuple("m" * 40 for _ in range(NAMED_CHARACTERS // 40))
    pending = PendingEvent()
    for number in range(1_000):
        pending.add_client(f"{number:040}", "c" * 60, "h" * 15)
    event = GroupEvent(
        "g" * 249,
        EventType.STABLE,
        Cause.MEMBER_JOINED,
        "é" * 255,
        2**31 - 1,
        2**41,
        10**6,
        member_ids,
        10**6,
        member_ids,
        left_causes=(Cause.REQUESTED_BY_ADMIN,) * len(member_ids),
        absent=member_ids,
        absent_count=10**6,
        assignment={"m" * (ASSIGNMENT_CHARACTERS - len('{"":{}}')): {}},
        clients=pending.clients,
    )
    assert pending.clients
    assert len(to_json(event)) < 60_000
    assert json.loads(to_json(event))["reason"] == "é" * 255
