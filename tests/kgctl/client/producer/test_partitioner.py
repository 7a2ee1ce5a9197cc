"""The partitioner agrees with independent implementations, and keyless records stick to a partition."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgctl.client.producer.partitioner import StickyPartition, murmur2, partition_of_key
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


def drawn(*numbers: int) -> Callable[[int], int]:
    order = iter(numbers)
    return lambda below: next(order) % below


def test_keyless_records_stay_on_a_partition_until_a_batch_is_full() -> None:
    sticky = StickyPartition(100, drawn(1, 2, 0))
    assert [sticky.partition([0, 1, 2], 50) for _ in range(6)] == [1, 1, 2, 2, 0, 0]


def test_keyless_records_avoid_a_partition_without_a_leader() -> None:
    sticky = StickyPartition(100, drawn(2, 1))
    assert sticky.partition([0, 1, 2], 1) == 2
    assert sticky.partition([0, 1], 1) == 1
    assert sticky.partition([0, 1, 2], 1) == 1


def test_keyless_records_reach_every_partition_eventually() -> None:
    sticky = StickyPartition(10, random.Random(7).randrange)
    assert {sticky.partition(range(6), 10) for _ in range(200)} == set(range(6))
