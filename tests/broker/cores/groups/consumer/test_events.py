"""The events of consumer groups: why the epoch grew, which topics changed, and who was fenced."""

from __future__ import annotations

from broker.cores.groups.consumer.event_notes import MOST_TOPICS, seen_topics, topic_changes
from broker.cores.groups.events import Cause, EventType
from broker.protocol.errors import ErrorCode
from tests.broker.cores.groups.consumer.clients import Client, V, beat, found, settle
from tests.broker.cores.groups.world import World

STARTED, STABLE = EventType.REBALANCE_STARTED, EventType.STABLE
Cases = list[tuple[EventType, Cause | None, str]]


def since(world: World, seen: int) -> Cases:
    return [(event.type, event.cause, event.reason) for event in world.events[seen:]]


def change(world: World, **counts: int | None) -> None:
    """Change topics; None deletes one."""
    for topic, count in counts.items():
        if count is None:
            del world.topics[topic]
        else:
            world.topics[topic] = count
    world.changes += 1


def test_events_say_which_topics_have_changed() -> None:
    world = World()
    names = [*"bcdefgh", "orders"]
    member = Client(world, "a", fields={"subscribed_topic_names": names})
    settle(member)
    for counts, reason in (
        ({"orders": 5}, "orders has 5 partitions, 3 before"),
        ({"b": 1}, "b created"),
        ({"orders": None}, "orders deleted"),
        (
            {"orders": 1, "b": None, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1},
            "b deleted, c created, d created, e created, f created, 2 more",
        ),
    ):
        seen = len(world.events)
        change(world, **counts)
        settle(member)
        assert since(world, seen) == [(one, Cause.TOPICS_CHANGED, reason) for one in (STARTED, STABLE)]
    seen = len(world.events)
    change(world, clicks=9)
    settle(member)
    assert world.events[seen:] == []


def test_events_name_the_clients_of_members() -> None:
    """The ids of members say nothing: clients draw them."""
    world = World()
    first, second = Client(world, "a"), Client(world, "b")
    settle(first, second)
    second.leave()
    settle(first)
    assert {event.group_type for event in world.events} == {"consumer"}
    assert [(event.joined, event.left, [*event.clients]) for event in world.events if event.type is STABLE] == [
        (("a",), (), ["a"]),
        (("b",), (), ["b"]),
        ((), ("b",), ["b"]),
    ]
    assert world.events[-1].clients["b"] == ("c1", "/127.0.0.1")


def test_the_start_of_a_rebalance_names_fewer_members_than_its_end() -> None:
    """Each member that joins starts one, so that long lists would fill the topic."""
    world = World()
    settle(*(Client(world, f"{number:064}") for number in range(20)))
    ids = [f"{number:064}" for number in range(1, 20)]
    started, stable = world.events[-2:]
    assert [(event.type, event.joined_count) for event in (started, stable)] == [(STARTED, 19), (STABLE, 19)]
    assert (list(started.joined), [*started.clients]) == (ids[:4], ids[:4])
    assert (list(stable.joined), [*stable.clients]) == (ids, ids)


def test_each_epoch_has_its_own_cause() -> None:
    """Also if it supersedes another one, whose members the event at the end names again."""
    world = World()
    first, second = Client(world, "a"), Client(world, "b")
    settle(first)
    seen = len(world.events)
    second.beat()
    change(world, orders=4)
    second.beat()
    second.beat(subscribed_topic_names=["orders", "clicks"])
    settle(first, second)
    assert since(world, seen) == [
        (STARTED, Cause.MEMBER_JOINED, ""),
        (STARTED, Cause.TOPICS_CHANGED, "orders has 4 partitions, 3 before"),
        (STARTED, Cause.SUBSCRIPTION_CHANGED, ""),
        (STABLE, Cause.SUBSCRIPTION_CHANGED, ""),
    ]
    assert world.events[-1].joined == ("b",)


def test_topics_that_match_are_a_new_subscription_at_first_and_changed_topics_later() -> None:
    world = World()
    member = Client(world, "a", fields={"subscribed_topic_regex": "orders.*"})
    settle(member)
    assert since(world, 0) == [
        (STARTED, Cause.MEMBER_JOINED, ""),
        (STABLE, Cause.MEMBER_JOINED, ""),
        (STARTED, Cause.SUBSCRIPTION_CHANGED, "1 topic matches the regular expressions"),
        (STABLE, Cause.SUBSCRIPTION_CHANGED, "1 topic matches the regular expressions"),
    ]
    seen = len(world.events)
    change(world, **{"orders-eu": 2})
    world.let_pass(11_000)
    settle(member)
    assert since(world, seen) == [(one, Cause.TOPICS_CHANGED, "orders-eu created") for one in (STARTED, STABLE)]


def test_a_group_with_very_many_topics_does_not_say_which_have_changed() -> None:
    world = World(topics={f"t{number}": 1 for number in range(MOST_TOPICS + 1)})
    before, few = seen_topics(world.topics, world), seen_topics(["t7"], world)
    change(world, t7=2)
    assert topic_changes(before, seen_topics(world.topics, world)) == ""
    assert topic_changes(few, seen_topics(["t7"], world)) == "t7 has 2 partitions, 1 before"


def test_a_fenced_member_has_one_event_until_it_is_back() -> None:
    world = World()
    first, second = Client(world, "a"), Client(world, "b")
    settle(first, second)
    fenced, seen = ErrorCode.FENCED_MEMBER_EPOCH, len(world.events)
    for _ in range(3):
        assert world.answer(beat("a", 9), V).error_code == fenced
    expected = (EventType.MEMBER_FENCED, None, f"a sent member epoch 9, not {first.epoch}")
    assert since(world, seen) == [expected]
    assert (world.events[-1].generation, world.events[-1].members) == (found(world).generation, 2)
    first.beat()
    assert world.answer(beat("a", 9), V).error_code == fenced
    assert since(world, seen) == [expected, expected]
    assert world.answer(beat("stranger", 9), V).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert len(world.events) == seen + 2


def test_the_fence_does_not_end_what_a_rebalance_reports() -> None:
    world = World()
    first, second = Client(world, "a"), Client(world, "b")
    settle(first)
    second.beat()
    world.answer(beat("a", 9), V)
    settle(first, second)
    assert (world.events[-1].type, world.events[-1].joined) == (STABLE, ("b",))
