"""The hash of a group's topics is Kafka's. Topics that do not exist do not count."""

from __future__ import annotations

from pathlib import Path

from broker.cores.groups.metadata_hash import metadata_hash
from tests.broker.cores.groups.consumer.clients import Client, found
from tests.broker.cores.groups.consumer.hash_vectors import Topics, read
from tests.broker.cores.groups.world import World

RECORDED = Path(__file__).parent / "hash_vectors.jsonl"


def test_the_hash_is_that_of_kafka() -> None:
    vectors = list(read(RECORDED.read_text().splitlines()))
    assert {len(vector.ids) for vector in vectors} >= {0, 1, 5}
    for vector in vectors:
        for names in (list(vector.ids), [*reversed(vector.ids), "absent"]):
            assert metadata_hash(names, vector) == vector.expected, vector


def test_the_hash_changes_with_each_fact_of_a_topic() -> None:
    def hashed(topic: str = "t", topic_id: bytes = b"\1" * 16, racks: str = "ab,b") -> int:
        placed = [frozenset(partition) for partition in racks.split(",")]
        return metadata_hash([topic], Topics({topic: topic_id}, {topic_id: placed}, 0))

    facts = [hashed(), hashed("u"), hashed(topic_id=b"\2" * 16)]
    facts += [hashed(racks=racks) for racks in ("b,ab", "ab,b,", "ab,", ",", "")]
    assert len(set(facts)) == len(facts)


def test_a_restart_finds_the_stored_hash_unchanged() -> None:
    """No epoch is spent until a topic changes."""
    world = World()
    member = Client(world, "a")
    member.beat()
    epoch, stored = found(world).generation, found(world).metadata_hash
    world.start()
    member.beat()
    assert (found(world).generation, found(world).metadata_hash) == (epoch, stored)
    world.topics["orders"] += 1
    world.changes += 1
    member.beat()
    assert found(world).generation == epoch + 1
