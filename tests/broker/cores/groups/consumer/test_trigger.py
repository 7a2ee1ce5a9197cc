"""DescribeGroupDetails and TriggerRebalance of consumer groups."""

from __future__ import annotations

from typing import Any

from broker.cores.groups.events import Cause, EventType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from tests.broker.cores.groups.consumer.clients import Client, found, settle
from tests.broker.cores.groups.world import World, commit


def trigger(world: World, group: str = "g", reason: str | None = "why not") -> Any:
    request = TriggerRebalanceRequest(groups=[TriggerRebalanceRequest.Group(group_id=group, reason=reason)])
    (row,) = world.answer(request, 0).groups
    return row


def details(world: World, group: str = "g", *, commits: bool = False) -> Any:
    (row,) = world.answer(DescribeGroupDetailsRequest(groups=[group], include_commits=commits), 2).groups
    return row


def test_a_triggered_rebalance_is_another_epoch_in_which_nothing_needs_to_move() -> None:
    world = World()
    clients = [Client(world, "a"), Client(world, "b")]
    settle(*clients)
    before, epoch = [client.names for client in clients], found(world).generation
    answer = trigger(world)
    assert (answer.error_code, answer.error_message, answer.generation_id) == (0, None, epoch)
    assert (found(world).generation, found(world).state_name) == (epoch + 1, "Assigning")
    assert trigger(world).generation_id == epoch + 1, "the group waits for another target already"
    assert found(world).generation == epoch + 1
    settle(*clients)
    assert [client.names for client in clients] == before
    assert {client.epoch for client in clients} == {epoch + 1}
    stable = world.events[-1]
    assert (stable.type, stable.cause, stable.reason) == (EventType.STABLE, Cause.REQUESTED_BY_ADMIN, "why not")
    assert stable.partitions_moved == 0


def test_a_triggered_rebalance_applies_another_assignor() -> None:
    """Its change alone raises no epoch."""
    world = World(topics={"orders": 3, "clicks": 3})
    fields = {"subscribed_topic_names": ["orders", "clicks"]}
    clients = [Client(world, name, fields=fields) for name in ("a", "b")]
    settle(*clients)
    uniform = [client.names for client in clients]
    for client in clients:
        client.beat(server_assignor="range")
    settle(*clients)
    assert [client.names for client in clients] == uniform
    trigger(world)
    settle(*clients)
    assert [client.names for client in clients] != uniform
    assert sorted(clients[0].names) == ["clicks", "orders"]


def test_a_group_without_members_is_not_rebalanced() -> None:
    world = World()
    member = Client(world, "a")
    settle(member)
    member.leave()
    empty, absent = trigger(world), trigger(world, "absent")
    assert (empty.error_code, empty.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Group g is Empty: it has no members to rebalance.",
    )
    assert (absent.error_code, absent.generation_id) == (ErrorCode.GROUP_ID_NOT_FOUND, -1)


def test_details_show_each_member_on_the_way_to_its_target() -> None:
    world = World(configs={"g": {"consumer.session.timeout.ms": "50000"}})
    first = Client(world, "a", fields={"rebalance_timeout_ms": 20_000})
    third = Client(world, "c", fields={"instance_id": "i", "subscribed_topic_names": ["clicks"]})
    first.beat()
    changed_ms = world.wall_ms
    third.beat()
    world.let_pass(1_000)
    Client(world, "b").beat()
    first.beat()
    third.leave(-2)
    world.let_pass(500)
    world.answer(commit({("orders", 0): 1}, group_id="other"), 8)
    group = details(world)
    assert (group.error_code, group.group_state, group.protocol_type, group.protocol) == (
        0,
        "Reconciling",
        "consumer",
        "uniform",
    )
    assert (group.generation_id, group.leader, group.state_since_ms) == (found(world).generation, None, changed_ms)
    shown = [
        (row.member_id, row.group_instance_id, row.phase, row.session_timeout_ms, row.rebalance_timeout_ms)
        for row in group.members
    ]
    assert shown == [
        ("a", None, "revoking", 50_000, 20_000),
        ("c", "i", "away", 50_000, 60_000),
        ("b", None, "waiting", 50_000, 60_000),
    ]
    assert [row.heartbeat_age_ms for row in group.members] == [500, 1_500, 500]
    world.start()
    after = details(world)
    assert after.state_since_ms == -1
    assert {row.heartbeat_age_ms for row in after.members} == {-1}


def test_details_have_the_times_of_commits() -> None:
    world = World()
    settle(member := Client(world, "a"))
    world.answer(commit({("orders", 0): 7}, member_id="a", generation=member.epoch), 9)
    (topic,) = details(world, commits=True).commits
    assert (topic.topic, topic.partitions, topic.committed_ms) == ("orders", [0], [world.wall_ms])
