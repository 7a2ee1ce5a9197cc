"""The partitioner agrees with independent implementations, and keyless records stick to a partition."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgctl.client.producer.core.sticky import StickyPartition
from kgctl.client.producer.partitioner import murmur2, partition_of_key
from kgctl.client.producer.partitioners import Partitions, UnusablePartitioner, load_partitioner
from tests.harness.independent import murmur2 as other_murmur2

# From the unit tests of Kafka's Java client, as signed numbers.
JAVA_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), JAVA_VECTORS.items())
def test_the_hash_equals_that_of_the_java_client(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


@given(st.binary(max_size=70))
@example(b"")
def test_the_hash_equals_that_of_kafka_python_for_any_key(key: bytes) -> None:
    assert murmur2(key) == other_murmur2(key)


@given(st.binary(max_size=70), st.integers(1, 5000))
def test_a_key_always_has_the_same_existing_partition(key: bytes, count: int) -> None:
    partition = partition_of_key(key, count)
    assert 0 <= partition < count
    assert partition == (other_murmur2(key) & 0x7FFFFFFF) % count


def sticky(seed: int, batch_bytes: int = 100, *, adaptive: bool = True) -> StickyPartition:
    return StickyPartition(batch_bytes, random.Random(seed), adaptive=adaptive)


def test_keyless_records_stay_on_a_partition_until_a_batch_is_full() -> None:
    partition = sticky(1)
    partition.choose([0, 1, 2], [0, 0, 0], 3)
    assert [partition.sent(50, at_boundary=True) for _ in range(2)] == [False, True]


def test_a_switch_waits_for_the_end_of_a_batch_for_at_most_one_more_batch() -> None:
    partition = sticky(1)
    partition.choose([0, 1], [0, 0], 2)
    assert [partition.sent(50, at_boundary=False) for _ in range(4)] == [False, False, False, True]


def test_keyless_records_avoid_a_partition_without_a_leader() -> None:
    partition = sticky(2)
    assert {partition.choose([0, 2], [0, 0], 3) for _ in range(50)} == {0, 2}


def test_without_any_leader_all_partitions_are_chosen() -> None:
    partition = sticky(2)
    assert {partition.choose([], [], 3) for _ in range(50)} == {0, 1, 2}


def test_keyless_records_reach_every_partition_equally() -> None:
    partition = sticky(7)
    counts = Counter(partition.choose(range(6), [3] * 6, 6) for _ in range(6000))
    assert all(800 < counts[number] < 1200 for number in range(6))


def test_partitions_with_longer_queues_are_chosen_less_often() -> None:
    # As in Kafka's example: queues of 0, 3 and 1 batches have weights of 4, 1 and 3.
    partition = sticky(7)
    counts = Counter(partition.choose([0, 1, 2], [0, 3, 1], 3) for _ in range(8000))
    assert [round(counts[number] / 1000) for number in range(3)] == [4, 1, 3]


def test_without_adaptive_partitioning_queues_do_not_matter() -> None:
    partition = sticky(7, adaptive=False)
    counts = Counter(partition.choose([0, 1], [0, 9], 2) for _ in range(2000))
    assert abs(counts[0] - counts[1]) < 200


def test_round_robin_takes_the_available_partitions_in_turn() -> None:
    chosen = load_partitioner("round-robin")
    assert [chosen("t", b"k", None, Partitions(4, [0, 1, 3])) for _ in range(4)] == [0, 1, 3, 0]
    assert chosen("other", b"k", None, Partitions(4, [0, 1, 3])) == 0
    assert chosen("none", None, None, Partitions(2, [])) == 0


def test_the_default_partitioner_leaves_keyless_records_to_the_sticky_partition() -> None:
    default, ignoring = load_partitioner("default"), load_partitioner("sticky")
    assert default("t", None, b"v", Partitions(3, [0])) is None
    assert default("t", b"21", b"v", Partitions(1000, [0])) == partition_of_key(b"21", 1000)
    assert ignoring("t", b"21", b"v", Partitions(3, [0])) is None


def test_a_partitioner_of_a_module_is_a_function_or_a_class() -> None:
    here = "tests.kgctl.client.producer.test_partitioner"
    for name in (f"{here}:last", f"{here}:Last"):
        assert load_partitioner(name)("t", None, None, Partitions(3, [0, 1])) == 2
    java = load_partitioner("org.apache.kafka.clients.producer.RoundRobinPartitioner")
    assert java("t", None, None, Partitions(3, [1])) == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("murmur", "unknown partitioner 'murmur': use default, sticky, round-robin, or module:name"),
        ("no.such.module:x", "cannot load partitioner 'no.such.module:x': ModuleNotFoundError"),
        ("tests.kgctl.client.producer.test_partitioner:JAVA_VECTORS", "cannot be called"),
    ],
)
def test_a_partitioner_that_cannot_be_used_is_named(name: str, reason: str) -> None:
    with pytest.raises(UnusablePartitioner, match=reason):
        load_partitioner(name)


def last(topic: str, key: bytes | None, value: bytes | None, partitions: Partitions) -> int:
    return partitions.total - 1


class Last:
    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partitions: Partitions) -> int:
        return partitions.total - 1
