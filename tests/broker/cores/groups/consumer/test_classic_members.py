"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and commits."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.consumer.member import MemberState
from broker.cores.groups.events import Cause
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.broker.cores.groups.consumer.classic_clients import (
    REBALANCE_MS,
    Classic,
    read,
    stable,
    subscription,
)
from tests.broker.cores.groups.consumer.clients import Client, found, kinds, named, owners, settle
from tests.broker.cores.groups.world import QUICK, World, commit, commit_in_transaction, heartbeat, join, leave, sync

UNKNOWN, FENCED = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
BEHIND = ErrorCode.REBALANCE_IN_PROGRESS
RANGE = {"range": subscription()}


@pytest.fixture
def world() -> World:
    """A consumer group with one member, `c`."""
    world = World(topics={"orders": 4, "clicks": 2})
    settle(Client(world, "c"))
    return world


def id_of(world: World, topic: str = "orders") -> bytes:
    topic_id = world.topic_id(topic)
    assert topic_id is not None
    return topic_id


def mixed(world: World, *classic: Classic, consumers: tuple[str, ...] = ("c",), rounds: int = 8) -> list[Client]:
    """Turns of all until the group is Stable."""
    clients = []
    for member_id in consumers:
        group = world.core.group("g")
        present = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        client = Client(world, member_id)
        if present is not None:
            client.epoch = present.current.member_epoch
            client.owned = client.told = {topic: sorted(one) for topic, one in present.current.assigned.items()}
        clients.append(client)
    for _ in range(rounds):
        for one in classic:
            one.turn()
        settle(*clients, rounds=1)
    assert found(world).state_name == "Stable"
    return clients


# ---- JoinGroup


def test_a_member_gets_an_id_joins_and_is_answered_at_once(world: World) -> None:
    asked = world.answer(join(protocols=RANGE), 4)
    assert asked.error_code == ErrorCode.MEMBER_ID_REQUIRED
    since = len(world.records)
    joined = world.answer(join(asked.member_id, protocols=RANGE), 4, "one")
    assert (joined.generation_id, joined.protocol_name, joined.leader) == (2, "range", "")
    assert (joined.member_id, joined.members) == (asked.member_id, [])
    assert kinds(world, since) == [5, 3, 7, 7, 6, 8]
    member = found(world).members[asked.member_id]
    assert (member.subscription.client_id, member.subscription.topic_names) == ("one", frozenset({"orders"}))
    assert member.subscription.classic == (10_000, (("range", subscription()),))
    # A lost answer: it joins again, and nothing changes, except that it has been in this epoch before.
    for expected in ([8], []):
        since = len(world.records)
        assert world.answer(join(asked.member_id, protocols=RANGE), 4, "one").generation_id == 2
        assert kinds(world, since) == expected


def test_clients_may_choose_ids_and_old_ones_need_none(world: World) -> None:
    assert world.answer(join("mine", protocols=RANGE), 4).member_id == "mine"
    old = world.answer(join(protocols=RANGE), 3)
    assert old.error_code == 0
    assert set(found(world).members) == {"c", "mine", old.member_id}


def test_the_rack_of_a_subscription_is_that_of_the_member(world: World) -> None:
    world.answer(join("a", protocols={"range": subscription(rack="r1")}), 4)
    assert found(world).members["a"].subscription.rack_id == "r1"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"roundrobin": subscription()}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"range": b"?"}}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"protocols": {"range": subscription() + bytes(16 << 20)}}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"group_instance_id": "z"}, UNKNOWN),
        ({"group_instance_id": "i"}, FENCED),
    ],
)
def test_refused_joins_change_nothing(world: World, fields: dict[str, Any], code: ErrorCode) -> None:
    world.answer(join(group_instance_id="i", protocols=RANGE), 5)
    since = len(world.records)
    refused = world.answer(join("a", **{"protocols": RANGE, **fields}), 5)
    assert (refused.error_code, refused.generation_id, kinds(world, since)) == (code, -1, [])


def test_a_full_group_refuses_another_member() -> None:
    world = World(QUICK._replace(group_consumer_max_size=1))
    settle(Client(world, "c"))
    assert world.answer(join("a", protocols=RANGE), 4).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_classic_members_share_a_protocol_whatever_the_others_have(world: World) -> None:
    both = {"range": subscription(), "roundrobin": subscription()}
    for member_id, protocols in (("a", both), ("b", both)):
        assert world.answer(join(member_id, protocols=protocols), 4).error_code == 0
    assert world.answer(join("a", protocols=RANGE), 4).error_code == 0
    only = {"roundrobin": subscription()}
    assert world.answer(join("b", protocols=only), 4).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    world.answer(leave("a"), 3)
    assert world.answer(join("b", protocols=only), 4).error_code == 0


def test_a_static_member_that_comes_back_takes_its_place(world: World) -> None:
    one = Classic(world, "one", instance="i")
    mixed(world, one)
    owned, epoch = one.owned, one.generation
    again = Classic(world, "one", instance="i")
    stable(again)
    assert (again.owned, again.generation, again.member_id != one.member_id) == (owned, epoch, True)
    assert one.beat() == FENCED


def test_a_static_member_may_subscribe_to_other_topics_as_it_comes_back(world: World) -> None:
    one = Classic(world, "one", instance="i")
    mixed(world, one)
    epoch = found(world).generation
    again = Classic(world, "one", instance="i", topics=("clicks",))
    mixed(world, again)
    assert (again.owned, again.generation) == ({"clicks": [0, 1]}, epoch + 1)


# ---- reconciliation


@pytest.mark.parametrize("is_cooperative", [False, True])
def test_members_of_both_protocols_share_the_partitions(world: World, is_cooperative: bool) -> None:
    one, two = (Classic(world, name, is_cooperative=is_cooperative) for name in ("one", "two"))
    mixed(world, one)
    assert len(one.owned["orders"]) == 2
    [c] = mixed(world, one, two)
    assert sorted(len(owned["orders"]) for owned in (one.owned, two.owned, c.names)) == [1, 1, 2]
    assert all(len(holders) == 1 for holders in owners(world).values())


def test_a_cooperative_member_gives_up_partitions_before_it_gets_the_epoch() -> None:
    world = World(topics={"orders": 6})
    one = Classic(world, "one", is_cooperative=True)
    settle(Client(world, "c"))
    mixed(world, one)
    new = world.answer(join("two", protocols=RANGE), 4).generation_id
    target = found(world).targets[one.member_id]
    assert (one.beat(), one.generation) == (BEHIND, new - 1)
    # It stays in its epoch, and is told by its next assignment what to give up.
    assert world.answer(one.join_request(), 7).generation_id == new - 1
    assert found(world).members[one.member_id].current.state == MemberState.UNREVOKED_PARTITIONS
    kept = read(world.answer(one.sync_request(), 5).assignment)
    assert kept == named(world, {topic: frozenset(partitions) for topic, partitions in target.items()})
    assert kept != one.owned
    assert one.beat() == BEHIND
    one.owned = kept
    assert world.answer(one.join_request(), 7).generation_id == new
    assert found(world).members[one.member_id].current.state == MemberState.STABLE


def test_a_member_joins_again_when_the_partitions_that_it_waits_for_are_free(world: World) -> None:
    [c] = mixed(world)
    joined = world.answer(join("a", protocols=RANGE), 4)
    generation = joined.generation_id
    assert found(world).members["a"].current.state == 2
    assert read(world.answer(sync("a", generation), 3).assignment) == {}
    assert world.answer(heartbeat("a", generation), 4).error_code == 0
    c.beat()
    assert world.answer(heartbeat("a", generation), 4).error_code == 0
    c.beat()
    assert world.answer(heartbeat("a", generation), 4).error_code == BEHIND
    assert world.answer(join("a", protocols=RANGE), 4).generation_id == generation
    assert len(read(world.answer(sync("a", generation), 3).assignment)["orders"]) == 2


def test_a_changed_topic_asks_classic_members_to_join_again(world: World) -> None:
    one = Classic(world, "one")
    [c] = mixed(world, one)
    world.topics, world.changes = {**world.topics, "orders": 6}, world.changes + 1
    c.beat()
    assert one.beat() == BEHIND
    mixed(world, one)
    assert len(one.owned["orders"]) == 3


# ---- SyncGroup and Heartbeat


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_has_the_version_of_the_subscription(world: World, version: int) -> None:
    protocols = {"range": subscription(["clicks"], version=version)}
    joined = world.answer(join("a", protocols=protocols), 4)
    synced = world.answer(sync("a", joined.generation_id), 3)
    assert (synced.assignment[:2], read(synced.assignment)) == (bytes([0, version]), {"clicks": [0, 1]})


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "nobody", "group_instance_id": None}, UNKNOWN),
        ({"member_id": "c", "group_instance_id": None}, UNKNOWN),  # it does not speak this protocol
        ({"member_id": "nobody", "group_instance_id": "i"}, FENCED),
        ({"group_instance_id": "z"}, UNKNOWN),
        ({"generation_id": 99}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "roundrobin"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({}, 0),
    ],
)
def test_syncs_and_heartbeats_are_checked(world: World, fields: dict[str, Any], code: int) -> None:
    one = Classic(world, "one", instance="i")
    mixed(world, one)
    assert world.answer(one.sync_request(**fields), 5).error_code == code
    if not any(name.startswith("protocol") for name in fields):
        assert one.beat(**fields) == code


def test_a_sync_behind_the_group_epoch_asks_to_join_again(world: World) -> None:
    one = Classic(world, "one")
    mixed(world, one)
    world.answer(join("two", protocols=RANGE), 4)
    assert world.answer(one.sync_request(), 5).error_code == BEHIND


# ---- timers


def test_a_member_must_join_within_its_rebalance_timeout_of_the_first_time_that_it_is_asked(world: World) -> None:
    one = Classic(world, "one")
    [c] = mixed(world, one)
    world.answer(join("two", protocols=RANGE), 4)
    for _ in range(4):
        assert one.beat() == BEHIND
        world.let_pass(REBALANCE_MS // 4 - 1)
        c.beat()
    assert one.member_id in found(world).members
    world.let_pass(4)
    assert one.member_id not in found(world).members
    assert world.events[-1].left_causes[-1] is Cause.REBALANCE_TIMED_OUT
    assert one.beat() == UNKNOWN


def test_a_member_must_sync_within_its_rebalance_timeout(world: World) -> None:
    joined = world.answer(join("a", protocols=RANGE, session_timeout_ms=60_000), 4)
    c = Client(world, "c", epoch=1, owned={id_of(world): [0, 1, 2, 3]})
    for _ in range(2):
        world.let_pass(29_999)
        c.beat()
        assert world.answer(heartbeat("a", joined.generation_id), 4).error_code in (0, BEHIND)
    assert "a" in found(world).members
    world.let_pass(2)
    assert "a" not in found(world).members
    assert world.events[-1].left_causes == (Cause.SYNC_TIMED_OUT,)


def test_a_member_that_has_joined_and_synced_stays_while_it_sends_heartbeats(world: World) -> None:
    one = Classic(world, "one")
    [c] = mixed(world, one)
    for _ in range(10):
        world.let_pass(20_000)
        assert one.beat() == 0
        c.beat()
    assert {key[0] for key in world.core.deadlines() if key[0].startswith("consumer")} == {"consumer session"}
    world.let_pass(30_000)
    assert one.member_id not in found(world).members


def test_after_a_restart_a_member_goes_on_with_a_new_session(world: World) -> None:
    one = Classic(world, "one")
    mixed(world, one)
    before = found(world).members
    world.start()
    assert found(world).members == before
    assert (one.beat(), world.answer(one.sync_request(), 5).error_code) == (0, 0)


def test_a_member_that_changes_its_protocol_has_no_timers_of_the_former_one(world: World) -> None:
    world.answer(join(group_instance_id="i", protocols=RANGE), 5)
    [member_id] = found(world).members.keys() - {"c"}
    c, changed = Client(world, "c", epoch=1), Client(world, member_id, fields={"instance_id": "i"})
    c.owned = c.told = {id_of(world): [0, 1, 2, 3]}
    for _ in range(4):
        settle(changed, c, rounds=1)
        world.let_pass(REBALANCE_MS // 2)
    assert member_id in found(world).members


# ---- LeaveGroup


def test_one_request_removes_members_of_both_protocols(world: World) -> None:
    one, other = Classic(world, "one"), Classic(world, "other", instance="i")
    mixed(world, one, other, consumers=("c", "d"))
    since, epoch = len(world.records), found(world).generation
    gone = [
        LeaveGroupRequest.Member(member_id=one.member_id),
        LeaveGroupRequest.Member(member_id="nobody"),
        LeaveGroupRequest.Member(member_id="", group_instance_id="i"),
        LeaveGroupRequest.Member(member_id="", group_instance_id="z"),
        LeaveGroupRequest.Member(member_id="nobody", group_instance_id="i"),
        LeaveGroupRequest.Member(member_id="c"),
        LeaveGroupRequest.Member(member_id="c"),
    ]
    answer = world.answer(LeaveGroupRequest(group_id="g", members=gone), 5)
    assert [row.error_code for row in answer.members] == [0, UNKNOWN, 0, UNKNOWN, FENCED, 0, 0]
    assert kinds(world, since) == [-8, -7, -5] * 3 + [3]
    assert (list(found(world).members), found(world).generation) == (["d"], epoch + 1)
    assert world.events[-1].left_causes == (Cause.MEMBER_LEFT, Cause.REQUESTED_BY_ADMIN, Cause.MEMBER_LEFT)


@pytest.mark.parametrize("version", [2, 3])
def test_a_leave_without_a_valid_member_changes_nothing(world: World, version: int) -> None:
    since = len(world.records)
    answer = world.answer(LeaveGroupRequest(group_id="g", member_id="nobody"), version) if version == 2 else None
    if answer is not None:
        assert answer.error_code == UNKNOWN
    else:
        assert world.answer(leave("nobody"), version).members[0].error_code == UNKNOWN
    assert kinds(world, since) == []


# ---- offsets


def test_a_member_commits_and_fetches_with_its_epoch_as_generation(world: World) -> None:
    one = Classic(world, "one")
    mixed(world, one)
    wrong = ErrorCode.ILLEGAL_GENERATION
    for generation, code in ((one.generation, 0), (one.generation - 1, wrong), (-1, wrong)):
        rows = [
            world.answer(commit({("orders", 0): 1}, one.member_id, generation), 8),
            world.answer(
                commit_in_transaction({("orders", 0): 2}, member_id=one.member_id, generation_id=generation), 3
            ),
        ]
        assert {row.topics[0].partitions[0].error_code for row in rows} == {code}
        asked = OffsetFetchRequest.Group(group_id="g", member_id=one.member_id, member_epoch=generation, topics=None)
        assert world.answer(OffsetFetchRequest(groups=[asked]), 9).groups[0].error_code == code


def test_a_static_member_that_comes_back_as_a_classic_one_has_no_regular_expression() -> None:
    world = World(topics={"orders": 4, "clicks": 2})
    other = Client(world, "other")
    s = Client(world, "s1", fields={"instance_id": "s", "subscribed_topic_regex": "orders|clicks"})
    for _ in range(4):
        settle(other, s, rounds=1)
    assert s.names["clicks"] == [0, 1]
    again = Classic(world, "again", instance="s")
    for _ in range(4):
        again.turn()
        other.beat()
    assert sorted(again.owned["orders"] + other.names["orders"]) == [0, 1, 2, 3]
    assert (again.owned.keys(), found(world).expressions, found(world).regexes) == ({"orders"}, {}, {})
