"""The order in which Java's HashMap iterates: Kafka's tools print many rows in it.

A HashMap puts keys into 2^n buckets by hash, and keeps the order of insertion within a bucket, also when it grows. Only
buckets with more than eight keys, which become trees, may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from kgctl.model.topic_partition import TopicPartition

K = TypeVar("K", bound=Hashable)
_MASK = 0xFFFFFFFF


def in_hash_order(
    keys: Iterable[K], *, copied: bool = False, sized: bool = False, hash_of: Callable[[K], int] | None = None
) -> list[K]:
    """Keys in the order of a HashMap into which they were put one by one.

    `copied`: a map made of another one; `sized`: a map made for this number of keys. Both have other numbers of buckets.
    `hash_of`: the hash code of a key that is no text and no partition.
    """
    ordered = list(dict.fromkeys(keys))
    needed = int(len(ordered) / 0.75 + 1) if copied else len(ordered) if sized else 16
    capacity = _capacity_for(ordered, needed)
    code_of = hash_of or _hash
    return sorted(ordered, key=lambda key: _spread(code_of(key)) & (capacity - 1))


def string_hash(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _MASK
    return value


def hash_of_map(entries: Mapping[str, str | None]) -> int:
    """The hash code of a Java map of texts."""
    codes = (string_hash(key) ^ (0 if value is None else string_hash(value)) for key, value in entries.items())
    return sum(codes) & _MASK


def as_java_sorts(names: Iterable[str]) -> list[str]:
    """Names in the order of Java's String.compareTo: by UTF-16 code units."""
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def of_described_topics(topics: Iterable[str]) -> list[str]:
    """Topics in the order in which the Java client describes them."""
    return in_hash_order(in_hash_order(in_hash_order(topics, sized=True), copied=True), sized=True)


def _capacity_for(keys: Sequence[object], needed: int) -> int:
    capacity = 1
    while capacity < needed or len(keys) > capacity * 3 // 4:
        capacity *= 2
    return capacity


def _hash(key: object) -> int:
    if isinstance(key, str):
        return string_hash(key)
    assert isinstance(key, TopicPartition)
    return (31 * (31 + key.partition) + string_hash(key.topic)) & _MASK


def _spread(value: int) -> int:
    return value ^ value >> 16
