"""The order of Java's HashMap, with orders that a JVM printed."""

from __future__ import annotations

from kgctl.compat.hash_order import as_java_sorts, in_hash_order
from kgctl.model.topic_partition import TopicPartition


def test_partitions_of_a_topic_are_in_the_order_of_their_buckets() -> None:
    keys = [TopicPartition("t-wide", number) for number in range(14)]
    found = [key.partition for key in in_hash_order(keys)]
    assert found == [10, 11, 12, 13, 6, 7, 8, 9, 2, 3, 4, 5, 0, 1]


def test_names_in_one_bucket_keep_the_order_of_insertion() -> None:
    # The hash codes of these two texts are equal.
    assert in_hash_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert in_hash_order(["BB", "Aa"]) == ["BB", "Aa"]


def test_a_copied_map_has_the_size_that_its_entries_need() -> None:
    keys = [f"k{number}" for number in range(12)]
    # 12 entries fill 16 buckets; a copy of 12 entries has 32.
    assert set(in_hash_order(keys)) == set(in_hash_order(keys, copied=True)) == set(keys)


def test_java_sorts_names_by_utf16_code_units() -> None:
    assert as_java_sorts(["\uffee", "\U0001f600", "b", "B"]) == ["B", "b", "\U0001f600", "\uffee"]
