"""ConsumerGroupHeartbeat: validation, joining, epochs, reconciliation, leaving, and timeouts."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cores.groups.settings import GroupSettings
from broker.protocol.errors import ErrorCode
from tests.broker.cores.groups.consumer.clients import Client, V, beat, found, kinds, owners, settle
from tests.broker.cores.groups.world import World, commit, fetch_all, fetched, join

FENCED, UNKNOWN = ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID
NO_GROUP, INVALID = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_REQUEST
ANY_TOPIC = b"\1" * 16
# Records of the first join: the member, the group, its target, the epoch of the target, what it owns.
FIRST_JOIN = [5, 3, 7, 6, 8]


@pytest.fixture
def world() -> World:
    return World()


def joined(world: World, *member_ids: str) -> list[Client]:
    clients = [Client(world, member_id) for member_id in member_ids]
    settle(*clients)
    return clients


# ---- validation, in Kafka's order


@pytest.mark.parametrize(
    ("request_", "version", "message"),
    [
        (beat("", 0), 1, "MemberId can't be empty."),
        (beat(" ", 1), 0, "MemberId can't be empty."),
        (beat("", -1), 0, "MemberId can't be empty."),
        (beat("a", 0, group=""), 1, "GroupId can't be empty."),
        (beat("a", 0, instance_id=" "), 1, "InstanceId can't be empty."),
        (beat("a", 0, rack_id=""), 1, "RackId can't be empty."),
        (beat("a", 0, rebalance_timeout_ms=-1), 1, "RebalanceTimeoutMs must be provided in first request."),
        (beat("a", 0, owned={ANY_TOPIC: [0]}), 1, "TopicPartitions must be empty when (re-)joining."),
        (
            beat("a", 0, subscribed_topic_names=None),
            1,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (beat("a", -2), 1, "InstanceId can't be null."),
        (beat("a", -3), 1, "MemberEpoch is invalid."),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, str) else "",
)
def test_an_invalid_request_is_refused(world: World, request_: Any, version: int, message: str) -> None:
    answer = world.answer(request_, version)
    assert (answer.error_code, answer.error_message) == (INVALID, message)
    assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)
    assert world.core.group("g") is None


def test_an_unknown_assignor_is_refused(world: World) -> None:
    answer = world.answer(beat("a", 0, server_assignor="sticky"), V)
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert answer.error_message == "ServerAssignor sticky is not supported. Supported assignors: uniform, range."


def test_a_subscription_that_is_too_large_to_be_stored_is_refused(world: World) -> None:
    topics = [f"{'t' * 240}-{number}" for number in range(5_000)]
    refused = world.answer(beat("m", 0, subscribed_topic_names=topics), V)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.UNKNOWN_SERVER_ERROR,
        "The subscription is too large to be stored.",
    )
    assert world.core.group("g") is None


def test_a_group_must_exist_unless_a_member_joins(world: World) -> None:
    answers = [world.answer(beat("a", epoch), V) for epoch in (5, -1)]
    assert [answer.error_code for answer in answers] == [NO_GROUP] * 2
    assert [answer.error_message for answer in answers] == ["Consumer group g not found.", "Group g not found."]


def test_the_group_may_have_a_largest_size() -> None:
    world = World(GroupSettings(group_consumer_max_size=1))
    (member,) = joined(world, "a")
    refused = world.answer(beat("b", 0), V)
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.error_message == "The consumer group has reached its maximum capacity of 1 members."
    assert member.beat().error_code == 0


# ---- joining


def test_the_first_member_gets_everything_with_kafkas_records(world: World) -> None:
    client = Client(world, "a")
    answer = client.beat()
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 1, 5_000)
    assert client.names == {"orders": [0, 1, 2]}
    assert kinds(world, 0) == FIRST_JOIN
    assert client.beat().assignment is None
    assert len(world.records) == len(FIRST_JOIN)


def test_the_broker_makes_the_member_id_in_version_0(world: World) -> None:
    first, second = (world.answer(beat("", 0), 0).member_id for _ in range(2))
    assert list(found(world).members) == [first, second]
    assert len({first, second, ""}) == 3


def test_a_member_that_subscribes_to_a_missing_topic_has_nothing_to_read(world: World) -> None:
    client = Client(world, "a", fields={"subscribed_topic_names": ["missing"]})
    client.beat()
    assert (client.epoch, client.owned, found(world).state_name) == (1, {}, "Stable")


def test_a_second_member_gets_partitions_only_after_the_first_has_revoked_them(world: World) -> None:
    first, second = Client(world, "a"), Client(world, "b")
    first.beat()
    second.beat()
    assert (second.epoch, second.owned, found(world).state_name) == (2, {}, "Reconciling")
    since = len(world.records)
    told = world.answer(beat("a", 1), V)
    # The revoking member stays in its epoch, and waits until it has said that it owns less.
    assert (told.member_epoch, [len(row.partitions) for row in told.assignment.topic_partitions]) == (1, [2])
    assert world.answer(beat("a", 1), V).assignment is None
    second.beat()
    assert second.owned == {}
    kept = {row.topic_id: row.partitions for row in told.assignment.topic_partitions}
    confirmed = world.answer(beat("a", 1, owned=kept), V)
    assert (confirmed.member_epoch, confirmed.assignment) == (2, None)
    second.beat()
    assert [len(partitions) for partitions in second.owned.values()] == [1]
    # The member that waits has a previous epoch from its second heartbeat on.
    assert kinds(world, since) == [8, 8, 8, 8]
    assert found(world).state_name == "Stable"


def test_three_members_share_everything(world: World) -> None:
    clients = joined(world, "a", "b", "c")
    assert {client.epoch for client in clients} == {3}
    assert sorted(partition for client in clients for partition in client.names["orders"]) == [0, 1, 2]
    assert all(len(holders) == 1 for holders in owners(world).values())


def test_a_changed_subscription_moves_the_group_to_another_epoch(world: World) -> None:
    (client,) = joined(world, "a")
    since = len(world.records)
    answer = client.beat(subscribed_topic_names=["orders", "clicks"])
    assert (answer.member_epoch, client.names) == (2, {"orders": [0, 1, 2], "clicks": [0]})
    assert kinds(world, since) == FIRST_JOIN


@pytest.mark.parametrize("field", [{"rack_id": "r"}, {"rebalance_timeout_ms": 5}, {"server_assignor": "range"}])
def test_other_changes_of_a_member_are_stored_without_a_rebalance(world: World, field: dict[str, Any]) -> None:
    (client,) = joined(world, "a")
    since = len(world.records)
    assert client.beat(**field).member_epoch == 1
    assert kinds(world, since) == [5]


def test_a_full_request_is_answered_with_the_assignment(world: World) -> None:
    (client,) = joined(world, "a")
    full = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"]}
    assert world.answer(beat("a", 1, **full), V).assignment is None
    assert world.answer(beat("a", 1, owned=client.owned, **full), V).assignment is not None


# ---- epochs


def test_a_member_in_another_epoch_is_fenced(world: World) -> None:
    (client,) = joined(world, "a")
    client.beat(subscribed_topic_names=["clicks", "orders"])
    greater, smaller = (world.answer(beat("a", epoch), V) for epoch in (3, 1))
    assert (greater.error_code, smaller.error_code) == (FENCED, FENCED)
    assert greater.error_message == (
        "The consumer group member has a greater member epoch (3) than the one known by the group coordinator (2). "
        "The member must abandon all its partitions and rejoin."
    )
    assert "a smaller member epoch (1)" in smaller.error_message


def test_the_previous_epoch_counts_if_the_last_answer_may_have_been_lost(world: World) -> None:
    (client,) = joined(world, "a")
    owned = dict(client.owned)
    client.beat(subscribed_topic_names=["clicks", "orders"])
    accepted = world.answer(beat("a", 1, owned=owned), V)
    assert (accepted.error_code, accepted.member_epoch) == (0, 2)
    strange = {**owned, ANY_TOPIC: [0]}
    assert world.answer(beat("a", 1, owned=strange), V).error_code == FENCED


def test_a_member_that_is_not_in_the_group_is_unknown(world: World) -> None:
    joined(world, "a")
    for epoch in (4, -1):
        answer = world.answer(beat("b", epoch), V)
        assert (answer.error_code, answer.error_message) == (UNKNOWN, "Member b is not a member of group g.")


def test_a_refused_heartbeat_changes_nothing(world: World) -> None:
    joined(world, "a")
    before, rows = found(world).members["a"], dict(world.rows)
    refused = world.answer(beat("b", 0, subscribed_topic_regex="(", subscribed_topic_names=["clicks"]), V)
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert (list(found(world).members), found(world).members["a"], world.rows) == (["a"], before, rows)


# ---- leaving and timeouts


def test_a_member_that_leaves_frees_its_partitions(world: World) -> None:
    first, second = joined(world, "a", "b")
    since = len(world.records)
    answer = first.leave()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "a", -1)
    assert kinds(world, since) == [-8, -7, -5, 3]
    assert found(world).state_name == "Assigning"
    second.beat()
    assert (second.epoch, second.names, found(world).state_name) == (3, {"orders": [0, 1, 2]}, "Stable")
    second.leave()
    assert (found(world).state_name, found(world).generation) == ("Empty", 4)


def test_a_silent_member_is_removed_after_its_session(world: World) -> None:
    first, second = joined(world, "a", "b")
    world.let_pass(30_000)
    second.beat()
    world.let_pass(14_999)
    assert list(found(world).members) == ["a", "b"]
    world.let_pass(1)
    assert list(found(world).members) == ["b"]
    assert world.answer(beat("a", first.epoch), V).error_code == UNKNOWN


def test_a_member_must_give_up_partitions_within_its_rebalance_timeout(world: World) -> None:
    first = Client(world, "a", fields={"rebalance_timeout_ms": 20_000})
    first.beat()
    second = Client(world, "b")
    second.beat()
    for _ in range(4):
        # It is alive, but never says that it has given up anything.
        world.answer(beat("a", 1), V)
        second.beat()
        world.let_pass(5_000)
    assert list(found(world).members) == ["b"]
    second.beat()
    assert second.names == {"orders": [0, 1, 2]}


def test_a_member_that_revokes_in_time_stays(world: World) -> None:
    first, second = Client(world, "a", fields={"rebalance_timeout_ms": 20_000}), Client(world, "b")
    first.beat()
    second.beat()
    for _ in range(6):
        first.beat()
        second.beat()
        world.let_pass(5_000)
    assert list(found(world).members) == ["a", "b"]


# ---- topics


def test_topics_that_are_created_grow_or_are_deleted_trigger_an_assignment_at_the_next_heartbeat(world: World) -> None:
    client = Client(world, "a", fields={"subscribed_topic_names": ["orders", "later"]})
    client.beat()
    for counts, expected in (
        ({"orders": 3, "later": 2}, {"orders": [0, 1, 2], "later": [0, 1]}),
        ({"orders": 4, "later": 2}, {"orders": [0, 1, 2, 3], "later": [0, 1]}),
        ({"later": 2}, {"later": [0, 1]}),
    ):
        epoch = client.epoch
        world.topics, world.changes = dict(counts), world.changes + 1
        settle(client, rounds=3)
        assert {name: part for name, part in client.names.items() if name in counts} == expected
        assert client.epoch == epoch + 1


def test_a_topic_that_the_group_does_not_subscribe_to_changes_nothing(world: World) -> None:
    (client,) = joined(world, "a")
    world.topics, world.changes = {**world.topics, "other": 1}, world.changes + 1
    since = len(world.records)
    assert client.beat().member_epoch == 1
    assert kinds(world, since) == []


# ---- groups of both types


def test_an_empty_classic_group_becomes_a_consumer_group_and_keeps_its_offsets(world: World) -> None:
    world.answer(commit({("orders", 0): 7}), 8)
    world.start()
    joined(world, "a")
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", 0): 7}
    world.start()
    assert (found(world).state_name, fetched(world.answer(fetch_all(), 7))) == ("Stable", {("orders", 0): 7})


def test_an_empty_consumer_group_becomes_a_classic_group_and_keeps_its_offsets(world: World) -> None:
    (client,) = joined(world, "a")
    world.answer(commit({("orders", 0): 7}, "a", client.epoch), 9)
    client.leave()
    since = len(world.records)
    world.ask(join(), 3)
    assert kinds(world, since)[:4] == [-6, -4, -3, 2]
    assert world.group().TYPE == "classic"
    world.start()
    assert (world.group().TYPE, fetched(world.answer(fetch_all(), 7))) == ("classic", {("orders", 0): 7})
