"""Online downgrade: a consumer group becomes a classic one when only classic members are left."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.events import Cause, EventType
from broker.protocol.errors import ErrorCode
from tests.broker.cores.groups.consumer.classic_clients import Classic, read, stable, subscription
from tests.broker.cores.groups.consumer.clients import Client, found, kinds, settle
from tests.broker.cores.groups.consumer.test_classic_members import id_of, mixed
from tests.broker.cores.groups.world import QUICK, World, commit, fetch_all, fetched, join, leave


@pytest.fixture
def world() -> World:
    world = World(topics={"orders": 4})
    settle(Client(world, "c"))
    return world


def classic_of(world: World) -> ClassicGroup:
    group = world.core.group("g")
    assert isinstance(group, ClassicGroup)
    return group


def state_of(world: World) -> Any:
    """What a restart must find again, once the group is Stable."""
    group = classic_of(world)
    members = {
        one.member_id: (one.group_instance_id, one.assignment, one.session_timeout_ms, one.rebalance_timeout_ms)
        for one in group.members.values()
    }
    return group.generation, group.protocol, group.leader, members


def test_when_the_last_consumer_leaves_the_others_rebalance_as_a_classic_group(world: World) -> None:
    one, two = Classic(world, "one"), Classic(world, "two", protocols=("roundrobin", "range"))
    [c] = mixed(world, one, two)
    world.answer(commit({("orders", 1): 7}, one.member_id, one.generation), 8)
    epoch, since = found(world).generation, len(world.records)
    assert c.leave().error_code == 0
    assert kinds(world, since) == [-8] * 3 + [-7] * 3 + [-6] + [-5] * 3 + [-4, -3, 2]
    group = classic_of(world)
    assert (group.state_name, group.generation, group.protocol) == ("PreparingRebalance", epoch, "range")
    # Until the rebalance, the targets are the assignments.
    assert [read(member.assignment) for member in group.members.values()] == [one.owned, two.owned]
    assert world.core.deadlines().keys() == {
        ("expiry",),
        ("join", "g"),
        ("session", "g", one.member_id),
        ("session", "g", two.member_id),
    }
    assert (world.events[-1].type, world.events[-1].left) == (EventType.REBALANCE_STARTED, ("c",))
    assert one.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    stable(one, two)
    assert one.generation == two.generation == epoch + 1
    assert sorted(one.owned["orders"] + two.owned["orders"]) == [0, 1, 2, 3]
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", 1): 7}
    before = state_of(world)
    world.start()
    assert (state_of(world), fetched(world.answer(fetch_all(), 7))) == (before, {("orders", 1): 7})


def test_a_crash_before_the_rebalance_leaves_a_stable_classic_group(world: World) -> None:
    one = Classic(world, "one")
    [c] = mixed(world, one)
    c.leave()
    before = state_of(world)
    world.start()
    assert (state_of(world), classic_of(world).state_name, one.beat()) == (before, "Stable", 0)


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("session", Cause.SESSION_TIMED_OUT),
        ("rebalance", Cause.REBALANCE_TIMED_OUT),
        ("admin", Cause.REQUESTED_BY_ADMIN),
        ("static", Cause.SESSION_TIMED_OUT),
    ],
)
def test_it_does_not_matter_how_the_last_consumer_goes(how: str, cause: Cause) -> None:
    world = World(topics={"orders": 4})
    fields = {"instance_id": "s"} if how == "static" else {"rebalance_timeout_ms": 25_000}
    c, one = Client(world, "c", fields=fields), Classic(world, "one")
    for _ in range(4 if how != "rebalance" else 1):
        settle(c, rounds=1)
        one.turn()
        one.turn()
    if how == "rebalance":
        c.beat()  # it is to give up partitions, and does not
        for _ in range(5):
            one.turn()
            world.let_pass(5_000)
    elif how == "admin":
        world.answer(leave("c", reason="member was removed by an admin"), 5)
    else:
        if how == "static":
            c.leave(-2)
        for _ in range(3):
            assert isinstance(world.core.group("g"), ConsumerGroup)
            one.beat()
            world.let_pass(15_000)
    assert classic_of(world).state_name == "PreparingRebalance"
    assert (world.events[-1].left, world.events[-1].left_causes) == (("c",), (cause,))


@pytest.mark.parametrize(
    "settings",
    [
        {"group_consumer_migration_policy": "disabled"},
        {"group_consumer_migration_policy": "upgrade"},
        {"group_max_size": 1},
    ],
)
def test_otherwise_it_stays_a_consumer_group(settings: dict[str, Any]) -> None:
    world = World(QUICK._replace(**settings), topics={"orders": 4})
    settle(Client(world, "c"))
    one, two = Classic(world, "one"), Classic(world, "two")
    [c] = mixed(world, one, two)
    c.leave()
    mixed(world, one, two, consumers=())
    assert sorted(one.owned["orders"] + two.owned["orders"]) == [0, 1, 2, 3]


def test_after_the_policy_has_changed_it_becomes_classic_when_a_member_goes_not_when_one_comes_back() -> None:
    world = World(QUICK._replace(group_consumer_migration_policy="upgrade"), topics={"orders": 4})
    settle(Client(world, "c"))
    one, two = Classic(world, "one", instance="i"), Classic(world, "two")
    [c] = mixed(world, one, two)
    c.leave()
    mixed(world, one, two, consumers=())
    world.settings = QUICK
    world.start()
    again = Classic(world, "again", instance="i")
    stable(again)
    assert found(world).member_count == 2
    two.leave()
    assert list(classic_of(world).members) == [again.member_id]


def test_a_group_without_any_member_stays_empty_until_one_joins(world: World) -> None:
    one = Classic(world, "one")
    mixed(world, one)
    world.answer(leave(one.member_id, "c"), 3)
    assert found(world).state_name == "Empty"
    assert world.answer(join("mine", protocols={"range": subscription()}), 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert found(world).state_name == "Empty"


def test_a_classic_static_member_that_replaces_the_last_consumer_needs_no_rebalance(world: World) -> None:
    one, c = Classic(world, "one"), Client(world, "c", fields={"instance_id": "s"})
    for _ in range(6):
        settle(c, rounds=1)
        one.turn()
    epoch, owned, since = found(world).generation, c.names, len(world.records)
    again = Classic(world, "again", instance="s")
    again.turn()
    assert kinds(world, since) == [-8, -7, -5, 5, 7, 8, 5, 8, -8, -8, -7, -7, -6, -5, -5, -4, -3, 2]
    group = classic_of(world)
    assert (group.state_name, group.generation, list(group.members)) == (
        "Stable",
        epoch,
        [one.member_id, again.member_id],
    )
    assert (again.owned, again.generation, one.beat()) == (owned, epoch, 0)
    assert (world.events[-1].type, world.events[-1].joined, world.events[-1].left) == (
        EventType.MEMBER_REPLACED,
        (again.member_id,),
        ("c",),
    )
    before = state_of(world)
    world.start()
    assert state_of(world) == before


def test_they_rebalance_if_the_static_member_has_changed_its_topics() -> None:
    world = World(topics={"orders": 4, "clicks": 1})
    one, c = Classic(world, "one"), Client(world, "c", fields={"instance_id": "s"})
    for _ in range(6):
        settle(c, rounds=1)
        one.turn()
    epoch = found(world).generation
    again = Classic(world, "again", instance="s", topics=("orders", "clicks"))
    again.turn()
    # The answer to its JoinGroup names the next epoch, and no later generation does.
    assert (classic_of(world).state_name, again.generation) == ("PreparingRebalance", epoch + 1)
    stable(one, again)
    assert (again.generation, one.generation) == (epoch + 2, epoch + 2)
    assert sorted(one.owned["orders"] + again.owned["orders"]) == [0, 1, 2, 3]


def test_members_that_do_not_own_their_targets_yet_rebalance_when_the_last_consumer_is_replaced(world: World) -> None:
    c, one = Client(world, "s1", fields={"instance_id": "s"}), Classic(world, "one")
    world.answer(leave("c"), 3)
    settle(c)
    one.turn()
    one.turn()
    assert (one.owned, found(world).state_name) == ({}, "Reconciling")
    again = Classic(world, "again", instance="s")
    again.turn()
    assert (classic_of(world).state_name, again.errors) == ("PreparingRebalance", [ErrorCode.REBALANCE_IN_PROGRESS])
    started = world.events[-1]
    assert (started.type, started.cause, started.left) == (EventType.REBALANCE_STARTED, Cause.MEMBER_JOINED, ("s1",))
    stable(one, again)
    assert sorted(one.owned["orders"] + again.owned["orders"]) == [0, 1, 2, 3]


def test_a_classic_static_member_may_replace_a_consumer_among_others(world: World) -> None:
    c, s = Client(world, "c", epoch=1, owned={id_of(world): [0, 1, 2, 3]}), Client(world, "s1")
    s.fields = {"instance_id": "s"}
    settle(s, c)
    again = Classic(world, "again", instance="s")
    stable(again)
    assert isinstance(world.core.group("g"), ConsumerGroup)
    assert (again.owned, again.generation) == (s.names, c.epoch)


def test_a_group_that_goes_back_and_forth_keeps_its_offsets_and_repeats_no_generation(world: World) -> None:
    one = Classic(world, "one")
    seen = []
    for turn in range(3):
        [c] = mixed(world, one, consumers=(f"c{turn}" if turn else "c",))
        world.answer(commit({("orders", turn): turn}, one.member_id, one.generation), 8)
        seen.append(one.generation)
        c.leave()
        stable(one)
        seen.append(one.generation)
        assert one.owned == {"orders": [0, 1, 2, 3]}
    assert seen == sorted(set(seen))
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", turn): turn for turn in range(3)}
    assert set(one.errors) == {ErrorCode.REBALANCE_IN_PROGRESS}
