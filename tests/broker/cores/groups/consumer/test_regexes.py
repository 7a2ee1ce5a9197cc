"""Subscriptions by regular expression: the broker resolves them, and follows the topics."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from broker.protocol.errors import ErrorCode
from tests.broker.cores.groups.consumer.clients import Client, V, beat, found, kinds, settle
from tests.broker.cores.groups.world import World


@pytest.fixture
def world() -> World:
    return World(topics={"orders-eu": 2, "orders-us": 1, "clicks": 1})


def with_regex(world: World, member_id: str, regex: str) -> Client:
    return Client(world, member_id, fields={"subscribed_topic_regex": regex})


def test_the_topics_are_found_after_the_heartbeat_that_brings_the_expression(world: World) -> None:
    client = with_regex(world, "a", "orders-.*")
    assert (client.beat().error_code, client.owned) == (0, {})
    # The join, and then the look-up, which asks for another assignment.
    assert kinds(world, 0) == [5, 3, 7, 6, 8, 16, 3]
    settle(client)
    assert client.names == {"orders-eu": [0, 1], "orders-us": [0]}
    assert client.epoch == 2


def test_the_whole_name_must_match(world: World) -> None:
    client = with_regex(world, "a", "orders")
    settle(client)
    assert client.owned == {}


def test_an_invalid_expression_is_refused(world: World) -> None:
    refused = world.answer(beat("a", 0, subscribed_topic_regex="a("), V)
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.error_message.startswith("SubscribedTopicRegex `a(` is not a valid regular expression: ")
    assert world.core.group("g") is None


def test_members_with_the_same_expression_share_its_topics(world: World) -> None:
    first, second = with_regex(world, "a", "orders.*"), with_regex(world, "b", "orders.*")
    settle(first)
    since = len(world.records)
    second.beat()
    assert 16 not in kinds(world, since)
    settle(first, second)
    assert sum(len(part) for client in (first, second) for part in client.names.values()) == 3
    # The last member with the expression takes it along.
    first.leave()
    assert list(found(world).regexes) == ["orders.*"]
    since = len(world.records)
    second.leave()
    assert kinds(world, since) == [-8, -7, -5, -16, 3]


def test_a_new_topic_is_found_at_a_heartbeat_but_not_at_once_after_the_last_look_up(world: World) -> None:
    client = with_regex(world, "a", "orders.*")
    settle(client)
    world.topics, world.changes = {**world.topics, "orders-cn": 1}, world.changes + 1
    world.let_pass(10_000)
    settle(client)
    assert "orders-cn" not in client.names
    world.let_pass(1)
    settle(client)
    assert client.names["orders-cn"] == [0]


def test_expressions_are_resolved_again_after_the_refresh_interval(world: World) -> None:
    client = with_regex(world, "a", "orders.*")
    settle(client)
    looked_up = found(world).regexes["orders.*"].timestamp_ms
    for _ in range(21):
        world.let_pass(30_000)
        client.beat()
    assert found(world).regexes["orders.*"].timestamp_ms > looked_up
    assert client.epoch == 2


def test_clearing_an_expression_does_not_rebalance(world: World) -> None:
    """As in Kafka 4.1."""
    client = with_regex(world, "a", "orders.*")
    settle(client)
    since = len(world.records)
    assert client.beat(subscribed_topic_regex="").member_epoch == 2
    assert kinds(world, since) == [5, -16]


def test_only_topics_that_the_client_may_describe_are_found() -> None:
    class Restricted(World):
        def visible_names(self, principal: str, client_host: str) -> Iterable[str]:
            assert (principal, client_host) == ("User:ANONYMOUS", "/127.0.0.1")
            return ["orders-us"]

    client = with_regex(Restricted(topics={"orders-eu": 2, "orders-us": 1}), "a", "orders.*")
    settle(client)
    assert client.names == {"orders-us": [0]}


def test_expressions_survive_a_restart_and_new_topics_are_found_after_it(world: World) -> None:
    client = with_regex(world, "a", "orders.*")
    settle(client)
    world.topics = {**world.topics, "orders-cn": 1}
    world.now_ms += 20_000
    world.start()
    assert found(world).regexes["orders.*"].topics == {"orders-eu", "orders-us"}
    settle(client)
    assert "orders-cn" in client.names


def test_another_expression_counts_from_its_look_up_on(world: World) -> None:
    client = with_regex(world, "a", "orders-.*")
    settle(client)
    world.let_pass(11_000)
    since = len(world.records)
    client.beat(subscribed_topic_regex="clicks")
    assert kinds(world, since) == [5, -16, 16, 3]
    settle(client)
    assert (client.names, list(found(world).regexes)) == ({"clicks": [0]}, ["clicks"])


def test_an_expression_that_changes_before_its_look_up_is_not_looked_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = with_regex(world, "a", "orders-.*")
    with monkeypatch.context() as patched:
        # The next request arrives in the same turn of the broker.
        patched.setattr(world, "run_due", lambda: None)
        client.beat()
        client.beat(subscribed_topic_regex="clicks")
    settle(client)
    assert (client.names, list(found(world).regexes)) == ({"clicks": [0]}, ["clicks"])


def test_many_expressions_and_topics_are_matched_in_several_steps() -> None:
    """Each step matches some 10,000 names, so that it does not stall other groups."""
    world = World(topics={f"t-{number}": 1 for number in range(6_000)})
    clients = [with_regex(world, f"m{number}", f"t-{number}") for number in range(5)]
    settle(*clients, rounds=1)
    world.let_pass(10_001)
    clients[0].beat()
    seen = []
    for _ in range(3):
        seen.append(len(found(world).regexes))
        world.let_pass(1)
    assert seen == [1, 1, 5]
    settle(*clients)
    assert [client.names for client in clients] == [{f"t-{number}": [0]} for number in range(5)]
