"""Online upgrade: a member of the consumer protocol makes a classic group with members a consumer group."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.events import Cause, EventType
from broker.cores.groups.records import GenerationFloor
from broker.protocol.errors import ErrorCode
from tests.broker.cores.groups.consumer.classic_clients import Classic, assignment, stable, subscription
from tests.broker.cores.groups.consumer.clients import Client, V, beat, found, kinds, named, settle
from tests.broker.cores.groups.world import QUICK, World, commit, fetch_all, fetched, heartbeat, join, sync


@pytest.fixture
def world() -> World:
    return World(topics={"orders": 4, "clicks": 2})


def hard(world: World) -> Any:
    group = found(world)
    return group.generation, group.assignment_epoch, group.metadata_hash, group.members, group.targets


def of_type(world: World) -> type:
    return type(world.core.group("g"))


def test_the_group_keeps_generation_assignments_and_offsets_and_the_newcomer_starts_a_rebalance(world: World) -> None:
    one, two = Classic(world, "one"), Classic(world, "two")
    stable(one, two)
    world.answer(commit({("orders", 1): 7}, one.member_id, one.generation), 8)
    before, since = {one.member_id: one.owned, two.member_id: two.owned}, len(world.records)
    newcomer = Client(world, "new")
    assert newcomer.beat().error_code == 0
    # The classic group ends, the consumer group is as it was, and then comes what the heartbeat changes.
    assert kinds(world, since) == [-2, 5, 5, 3, 7, 7, 6, 8, 8, 5, 3, 7, 7, 6, 8]
    group = found(world)
    assert (group.generation, group.assignment_epoch) == (one.generation + 1, one.generation + 1)
    for member_id, owned in before.items():
        member = group.members[member_id]
        assert named(world, member.current.assigned) == owned
        assert (member.current.member_epoch, member.current.previous_member_epoch) == (one.generation, one.generation)
        assert member.subscription.classic is not None
        assert member.subscription.classic.session_timeout_ms == 30_000
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", 1): 7}
    stored = hard(world)
    world.start()
    assert (hard(world), fetched(world.answer(fetch_all(), 7))) == (stored, {("orders", 1): 7})
    assert (one.beat(), two.beat()) == (ErrorCode.REBALANCE_IN_PROGRESS,) * 2
    for _ in range(4):
        stable(one, two)
        newcomer.beat()
    assert sorted(len(owned["orders"]) for owned in (one.owned, two.owned, newcomer.names)) == [1, 1, 2]
    assert one.generation == two.generation == newcomer.epoch


def test_what_a_cooperative_member_has_not_given_up_yet_is_not_free(world: World) -> None:
    names: dict[str, Any] = {"protocols": ("cooperative-sticky",), "is_cooperative": True}
    one, two = Classic(world, "one", **names), Classic(world, "two", **names)
    stable(one)
    # Its assignment lacks two of its partitions, and it has not joined again without them.
    for member in (two, two, one, one, two, two):
        member.turn()
    assert (one.owned, two.owned, one.must_join) == ({"orders": [0, 2]}, {}, True)
    newcomer = Client(world, "new")
    settle(newcomer, rounds=2)
    world.start()
    settle(newcomer, rounds=2)
    current = found(world).members[one.member_id].current
    assert (named(world, current.assigned), named(world, current.pending_revocation)) == (
        {"orders": [0, 2]},
        {"orders": [1, 3]},
    )
    assert (newcomer.names, one.beat()) == ({}, ErrorCode.REBALANCE_IN_PROGRESS)
    for _ in range(4):
        stable(one, two)
        newcomer.beat()
    assert sorted(one.owned["orders"] + two.owned["orders"] + newcomer.names["orders"]) == [0, 1, 2, 3]


def test_partitions_that_exist_no_more_are_not_kept(world: World) -> None:
    one = Classic(world, "one", topics=("orders", "clicks"))
    stable(one)
    world.topics["orders"] = 1  # it was deleted and created again
    newcomer = Client(world, "new", fields={"subscribed_topic_names": ["clicks"]})
    assert newcomer.beat().error_code == 0
    assert named(world, found(world).members[one.member_id].current.assigned) == {"clicks": [0, 1], "orders": [0]}


def test_the_history_shows_the_newcomer_as_the_cause(world: World) -> None:
    one = Classic(world, "one")
    stable(one)
    newcomer = Client(world, "new")
    newcomer.beat()
    started = world.events[-1]
    assert (started.type, started.cause, started.joined) == (
        EventType.REBALANCE_STARTED,
        Cause.MEMBER_JOINED,
        ("new",),
    )
    for _ in range(3):
        stable(one)
        newcomer.beat()
    ended = world.events[-1]
    assert (ended.type, ended.generation, ended.partitions_moved) == (EventType.STABLE, newcomer.epoch, 2)
    assert ended.assignment == {one.member_id: one.owned, "new": newcomer.names}


def test_parked_joins_and_syncs_are_answered_so_that_their_clients_join_again(world: World) -> None:
    protocols = {"range": subscription()}
    first = world.answer(join(protocols=protocols), 3)
    waiting = world.ask(join(protocols=protocols), 3)
    Client(world, "new").beat()
    answer = world.answers[waiting]
    assert (answer.error_code, answer.member_id) == (ErrorCode.REBALANCE_IN_PROGRESS, "c1-2")
    assert list(found(world).members) == [first.member_id, "c1-2", "new"]

    first = world.answer(join(group_id="h", protocols=protocols), 3)
    second = world.ask(join(group_id="h", protocols=protocols), 3)
    world.ask(join(first.member_id, "h", protocols=protocols), 3)
    waiting = world.ask(sync(world.answers[second].member_id, 2, group_id="h"), 3)
    Client(world, "new", group="h").beat()
    assert world.answers[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("settings", "fields", "share", "code", "reason"),
    [
        ({"group_consumer_migration_policy": "disabled"}, {}, assignment({}), 69, "online upgrade is disabled"),
        ({"group_consumer_migration_policy": "downgrade"}, {}, assignment({}), 69, "online upgrade is disabled"),
        ({"group_consumer_max_size": 1}, {}, assignment({}), 69, "the group size exceeds"),
        ({}, {"protocol_type": "connect"}, b"", 69, "does not use the consumer embedded protocol"),
        ({}, {"protocols": {"range": b"?"}}, b"", 69, "the embedded consumer protocol is malformed"),
        ({}, {}, b"?", 69, "the embedded consumer protocol is malformed"),
        ({}, {}, assignment({}, user_data=b"mine"), 69, "an unsupported custom assignor is in use"),
        ({"group_initial_rebalance_delay_ms": 3_000}, {}, None, -1, "has not selected a protocol"),
    ],
)
def test_a_group_that_cannot_be_upgraded_stays_as_it_is(
    settings: dict[str, Any], fields: dict[str, Any], share: bytes | None, code: int, reason: str
) -> None:
    world = World(QUICK._replace(**settings))
    fields = {"protocols": {"range": subscription()}, **fields}
    tickets = [world.ask(join(**fields), 3) for _ in range(2)]
    if share is not None:
        first = world.answers[tickets[0]].member_id
        world.ask(join(first, **fields), 3)
        request = sync(first, 2, {first: "", "c1-2": ""})
        for row in request.assignments:
            row.assignment = share
        assert world.answer(request, 3).error_code == 0
    since = len(world.records)
    refused = world.answer(beat("new", 0), V)
    assert (refused.error_code, kinds(world, since)) == (code, [])
    assert reason in refused.error_message
    assert (of_type(world), world.group().member_count) == (ClassicGroup, 2)
    # It also goes on.
    if share is not None:
        assert world.answer(heartbeat(first, 2), 3).error_code == 0
    else:
        assert {world.answers[ticket].error_code for ticket in tickets} == {ErrorCode.REBALANCE_IN_PROGRESS}
        again = [world.ask(join(member_id, **fields), 3) for member_id in list(world.group().members)]
        world.let_pass(6_000)
        assert {world.answers[ticket].generation_id for ticket in again} == {1}


def test_a_member_that_does_not_support_the_former_protocol_prevents_the_upgrade(world: World) -> None:
    both = {"range": subscription(), "roundrobin": subscription()}
    world.answer(join(protocols=both), 3)
    world.ask(join(protocols={"roundrobin": subscription()}), 3)
    assert world.answer(beat("new", 0), V).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert of_type(world) is ClassicGroup


def test_assignments_without_user_data_do_not_prevent_it(world: World) -> None:
    first = world.answer(join(protocols={"range": subscription()}), 3).member_id
    request = sync(first, 1, {first: ""})
    request.assignments[0].assignment = assignment({"orders": [0], "gone": [3]}, user_data=b"")
    world.answer(request, 3)
    assert world.answer(beat("new", 0), V).error_code == 0
    # Topics that do not exist have no id.
    assert named(world, found(world).members[first].current.assigned) == {"orders": [0]}


def test_a_full_group_is_upgraded_only_for_a_static_member_that_is_in_it() -> None:
    world = World(QUICK._replace(group_consumer_max_size=1))
    one = Classic(world, "one", instance="a")
    stable(one)
    assert world.answer(beat("new", 0), V).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert of_type(world) is ClassicGroup


def test_a_generation_learned_before_a_crash_is_not_used_again(world: World) -> None:
    one = Classic(world, "one")
    stable(one)
    two = world.ask(join(protocols={"range": subscription()}), 3)
    learned = world.answer(one.join_request(), 7)
    assert (learned.generation_id, world.answers[two].generation_id) == (2, 2)
    world.start()
    assert world.group().generation == 1
    assert Client(world, "new").beat().member_epoch == 3
    assert found(world).members[one.member_id].current.member_epoch == 2
    assert [record for record in world.records if isinstance(record, GenerationFloor)][-1].generation is None


def test_a_classic_member_keeps_its_own_session(world: World) -> None:
    one, newcomer = Classic(world, "one"), Client(world, "new")
    stable(one)
    newcomer.beat()
    world.let_pass(29_999)
    assert list(found(world).members) == [one.member_id, "new"]
    assert world.core.deadlines().keys() & {("session", "g", one.member_id), ("join", "g"), ("sync", "g")} == set()
    world.let_pass(1)
    assert list(found(world).members) == ["new"]
    assert world.events[-1].left_causes == (Cause.SESSION_TIMED_OUT,)


def test_no_timer_of_the_classic_group_is_left_while_it_rebalances(world: World) -> None:
    one = Classic(world, "one")
    stable(one)
    world.ask(join(protocols={"range": subscription()}), 4)  # an id is given out
    world.ask(join(protocols={"range": subscription()}), 3)
    Client(world, "new").beat()
    assert {key[0] for key in world.core.deadlines()} == {"expiry", "consumer session"}


@pytest.mark.parametrize("is_consumer_group", [False, True])
def test_a_static_member_that_changes_its_protocol_keeps_its_partitions(world: World, is_consumer_group: bool) -> None:
    one, two, other = Classic(world, "one", instance="a"), Classic(world, "two"), Client(world, "other")
    stable(one, two)
    for _ in range(4 * is_consumer_group):
        other.beat()
        stable(one, two)
    epoch, owned = world.core.group("g").generation, one.owned  # type: ignore[union-attr]
    changed = Client(world, "changed", fields={"instance_id": "a"})
    assert changed.beat().error_code == 0
    assert (of_type(world), changed.names, changed.epoch) == (ConsumerGroup, owned, epoch)
    assert world.events[-1].type is EventType.MEMBER_REPLACED
    assert one.beat() == ErrorCode.FENCED_INSTANCE_ID
    assert two.beat() == 0
    # The session of the former id ends without consequences.
    for _ in range(4):
        world.let_pass(20_000)
        two.beat()
        settle(changed, rounds=1)
        other.epoch = 0
    assert "changed" in found(world).members


def test_the_consumer_member_of_the_same_client_is_fenced_until_its_classic_session_ends(world: World) -> None:
    one = Classic(world, "one")
    stable(one)
    refused = world.answer(beat(one.member_id, 0), V)
    assert (refused.error_code, of_type(world)) == (ErrorCode.FENCED_MEMBER_EPOCH, ClassicGroup)
