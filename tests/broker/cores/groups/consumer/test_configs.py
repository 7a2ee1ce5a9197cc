"""The session timeout of a group's own config: applied from a member's next heartbeat on, and after a restart."""

from __future__ import annotations

from tests.broker.cores.groups.consumer.clients import Client, found
from tests.broker.cores.groups.world import World

SESSION, BEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def test_a_session_lasts_as_long_as_the_group_says() -> None:
    world = World()
    member, other = Client(world, "a"), Client(world, "b", group="other")
    assert [member.beat().heartbeat_interval_ms, other.beat().heartbeat_interval_ms] == [5_000, 5_000]
    world.configs["g"] = {SESSION: "10000", BEAT: "2000"}
    world.let_pass(44_999)
    assert list(found(world).members) == ["a"], "the session that began before the change is as long as before"
    assert [member.beat().heartbeat_interval_ms, other.beat().heartbeat_interval_ms] == [2_000, 5_000]
    world.let_pass(9_999)
    assert list(found(world).members) == ["a"]
    world.let_pass(1)
    assert not found(world).members
    assert list(found(world, "other").members) == ["b"]


def test_a_restart_begins_sessions_of_the_length_that_the_group_says() -> None:
    world = World(configs={"g": {SESSION: "10000"}})
    Client(world, "a").beat()
    world.start()
    world.let_pass(9_999)
    assert list(found(world).members) == ["a"]
    world.let_pass(1)
    assert not found(world).members
