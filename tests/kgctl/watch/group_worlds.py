"""Seeded worlds of one group on our coordinator, whose members do what members do."""

from __future__ import annotations

from random import Random

from broker.protocol.messages.delete_groups import DeleteGroupsRequest
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


def consumer_world(seed: int) -> World:
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
    return world


def share_world(seed: int) -> World:
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
    return world


def mixed_world(seed: int, *, is_static: bool) -> World:
    """Clients stop, and others of any protocol take their places."""
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
    return world
