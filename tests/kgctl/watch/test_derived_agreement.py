"""Events that are derived from the records of our coordinator are those that it records itself, as far as both know them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from broker.cores.groups.events import EventType, GroupEvent
from broker.cores.groups.records import GenerationFloor, to_row
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from kgctl.client.admin.group_records import group_record
from kgctl.model.history import LEFT_OR_TIMED_OUT, GroupEventRow
from kgctl.watch.derived_events import DerivedEvents, with_names
from tests.broker.cores.groups.consumer.classic_clients import Classic
from tests.broker.cores.groups.consumer.clients import Client
from tests.broker.cores.groups.share.clients import Client as ShareClient
from tests.broker.cores.groups.world import World

MOVES = 150
WEIGHTS = {
    "beat": 40,
    "join": 8,
    "leave": 5,
    "silent": 2,
    "pass": 10,
    "topics": 5,
    "subscribe": 4,
    "return": 3,
    "regex": 2,
}
TOPICS = ("orders", "clicks", "late")
# The others are deleted at times; then they have no name.
LASTING = "orders"
# A stored group shows that a member left, not why.
GONE = {"member left", "session timed out", "rebalance timed out"}


def derived(world: World) -> list[GroupEventRow]:
    found = DerivedEvents()
    for state in world.records:
        if isinstance(state, GenerationFloor):
            continue
        row = to_row(state)  # type: ignore[arg-type]
        record = group_record(row.key, row.value, row.timestamp_ms)
        if record is not None:
            found.take(record, True)
    world.topics |= dict.fromkeys(TOPICS, 1)
    names = {(world.topic_id(name) or b"").hex(): name for name in TOPICS}
    return [with_names(row, names) for row in found.rows()]


def known(world: World) -> tuple[list[Any], list[Any]]:
    """The recorded and the derived events, as far as a log can prove them."""
    recorded = [_of_event(event) for event in world.events if event.type is not EventType.MEMBER_FENCED]
    return recorded, [_of_row(row) for row in derived(world)]


def _of_event(event: GroupEvent) -> tuple[Any, ...]:
    cause = None if event.cause is None else event.cause.value
    if event.type is EventType.MEMBER_REPLACED:
        cause = None
    assigned = event.assignment
    owned = None if assigned is None else {m: [*topics.get(LASTING, ())] for m, topics in assigned.items()}
    return (
        event.wall_ms,
        event.type.value,
        event.group_type,
        event.generation,
        LEFT_OR_TIMED_OUT if cause in GONE else cause,
        event.members,
        sorted(event.joined),
        sorted(event.left),
        event.prepare_ms,
        event.partitions_moved,
        owned,
        {member: tuple(client) for member, client in event.clients.items()},
    )


def _of_row(row: GroupEventRow) -> tuple[Any, ...]:
    owned = None
    if row.assignment is not None:
        owned = {
            member: [number for entry in topics if entry.topic == LASTING for number in entry.partitions]
            for member, topics in row.assignment.items()
        }
    return (
        row.timestamp,
        row.event,
        row.group_type,
        row.generation,
        row.cause,
        row.members,
        sorted(row.joined),
        sorted(row.left),
        row.prepare_ms,
        row.partitions_moved,
        owned,
        {member: (client.client_id, client.host) for member, client in row.clients.items()},
    )


@pytest.mark.parametrize("seed", range(8))
def test_consumer_groups(seed: int) -> None:
    """Members join, leave, fall silent, return under new ids, and change subscriptions; topics come, grow and go."""
    random, world, clients, made = Random(seed), World(), list[Client](), 0
    for _ in range(MOVES):
        move = random.choices(*zip(*WEIGHTS.items(), strict=True))[0]
        client = random.choice(clients) if clients else None
        world.let_pass(random.randrange(50))
        if move == "join" and len(clients) < 6:
            made += 1
            instance = {"instance_id": f"i{made}"} if random.random() < 0.3 else {}
            clients.append(Client(world, f"m{made}", fields=instance))
            clients[-1].beat()
        elif move == "topics":
            name, count = random.choice(TOPICS), random.choice((None, 1, 2, 3, 5, 8))
            if count is None and name != LASTING:
                world.topics.pop(name, None)
            else:
                world.topics[name] = max(count or 1, world.topics.get(name, 0))
            world.changes += 1
        elif client is None:
            continue
        elif move == "beat":
            client.beat()
        elif move == "leave":
            client.leave()
            clients.remove(client)
        elif move == "silent":
            for _ in range(10):
                world.let_pass(5_000)
                for other in clients:
                    if other is not client:
                        other.beat()
            clients.remove(client)
        elif move == "pass":
            for one in clients:
                one.beat()
        elif move == "subscribe" and "subscribed_topic_regex" not in client.fields:
            names = random.sample(TOPICS, random.randrange(1, 4))
            client.beat(subscribed_topic_names=names)
        elif move == "regex":
            client.beat(subscribed_topic_regex=random.choice(("o.*", ".*c.*", "")))
        elif move == "return" and client.fields:
            client.leave(-2)
            made += 1
            world.let_pass(random.randrange(50))
            clients[clients.index(client)] = Client(world, f"m{made}", fields=client.fields)
            clients[-1].beat()
    recorded, found = known(world)
    assert found == recorded


@pytest.mark.parametrize("seed", range(8))
def test_share_groups(seed: int) -> None:
    """Partitions get their state a heartbeat later; epochs that change nothing are no events."""
    random, world, clients, made = Random(seed), World(), list[ShareClient](), 0
    for _ in range(MOVES):
        move = random.choices(("beat", "join", "leave", "all", "topics", "subscribe"), (40, 8, 5, 10, 4, 3))[0]
        client = random.choice(clients) if clients else None
        world.let_pass(random.randrange(50))
        if move == "join" and len(clients) < 6:
            made += 1
            clients.append(ShareClient(world, f"m{made}", tuple(random.sample(TOPICS, random.randrange(1, 4)))))
            clients[-1].beat()
        elif move == "topics":
            name = random.choice(TOPICS)
            world.topics[name] = world.topics.get(name, 0) + random.randrange(1, 3)
            world.changes += 1
        elif client is None:
            continue
        elif move == "beat":
            client.beat()
        elif move == "leave":
            client.leave()
            clients.remove(client)
        elif move == "subscribe":
            client.beat(*random.sample(TOPICS, random.randrange(1, 4)))
        else:
            for one in clients:
                one.beat()
    for client in clients:
        client.leave()
    world.answer(DeleteGroupsRequest(groups_names=["g"]), 2)
    recorded, found = known(world)
    assert found == recorded


@pytest.mark.parametrize("is_static", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_migrations(seed: int, is_static: bool) -> None:
    """Of classic generations a log has the ends only: not their causes, not who came and left before the end, and not whether
    a rebalance was under way when the group became a consumer group, which a static member that returns then ends.
    """
    random, world, clients = Random(seed), World(topics={"orders": 5}), dict[str, Classic | Client]()

    def turn(name: str) -> None:
        client = clients.get(name)
        if isinstance(client, Classic):
            client.turn()
        elif client is not None and client.beat().error_code:
            client.epoch, client.owned, client.told = 0, {}, {}

    for made in range(1, 41):
        name, kind = random.choice("abc"), random.choice(("eager", "cooperative", "consumer", None))
        former = clients.pop(name, None)
        instance = f"instance-{name}" if is_static else None
        if isinstance(former, Client):
            if former.epoch > 0:
                former.leave(-2 if instance and kind == "consumer" else -1)
        elif former is not None and former.member_id and not instance:
            former.leave()
        if kind == "consumer":
            clients[name] = Client(world, f"{name}{made}", fields={"instance_id": instance} if instance else {})
        elif kind is not None:
            clients[name] = Classic(world, f"{name}{made}", instance=instance, is_cooperative=kind == "cooperative")
        for _ in range(random.choice((3, 40))):
            for one in random.sample("abc", 3):
                turn(one)
                world.let_pass(random.randrange(1_000))
    world.let_pass(300_000)
    recorded, found = known(world)

    def ends(events: list[Any]) -> list[Any]:
        return [
            (at_ms, kind.replace("member_replaced", "stable"), *of, members, {*joined} - {*left}, {*left} - {*joined})
            for at_ms, kind, *of, _, members, joined, left, _, _, _, _ in events
            if kind != "rebalance_started"
        ]

    assert ends(found) == ends(recorded)
