"""The order in which Java's hash maps and sets iterate.

Kafka's uniform assignor fills members in this order, and takes partitions from them in this order. Buckets come one after the other,
and the keys of a bucket in the order in which they were put there. Java turns a bucket with more than eight keys into a tree or a
larger table; this is left out, so the order may then differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from operator import mul
from typing import TypeVar

Key = TypeVar("Key", str, bytes, tuple[bytes, int])

_SMALLEST_TABLE = 16
_BITS = 0xFFFFFFFF
_POWERS: list[int] = [1]


def map_order(keys: Iterable[str]) -> list[str]:
    """Texts that are put into a new HashMap one after the other."""
    put = list(keys)
    return _by_bucket(put, list(map(_bucket_hash, put)), grown(_SMALLEST_TABLE, len(put)))


def set_order(keys: Collection[str]) -> list[str]:
    """Texts in a HashSet that was made from this collection, such as the subscribed topics of a member."""
    put = list(dict.fromkeys(keys))
    return _by_bucket(put, list(map(_bucket_hash, put)), copied_capacity(len(keys)))


def timeline_order(keys: Iterable[str], most: int = 0, *, is_last_new: bool = False) -> list[str]:
    """Texts that are put into a TimelineHashMap, Kafka's map of members and of much else, one after the other.

    Each of them was replaced after that, as Kafka replaces members when it changes them; this may double the table. `most` is how
    many keys the map has had at a time, if it has more buckets for that. `is_last_new`: the last key has not been replaced yet.
    """
    put = list(keys)
    size_bits = 1
    while (max(len(put) - is_last_new, most) + 1) * 3 > 4 << size_bits:
        size_bits += 1
    put.reverse()  # the newest key of a slot comes first
    shift = 64 - size_bits
    return sorted(put, key=lambda key: _slot_hash(key) >> shift)


def ids_order(ids: Sequence[bytes], capacity: int) -> list[bytes]:
    """Topic ids in a table with this number of buckets."""
    return _by_bucket(ids, [_spread(_id_hash(topic_id)) for topic_id in ids], capacity)


def pairs_order(pairs: Sequence[tuple[bytes, int]], capacity: int) -> list[tuple[bytes, int]]:
    """Topic ids with partitions, Kafka's TopicIdPartition, in a table with this number of buckets."""
    hashes = {topic_id: 31 * _id_hash(topic_id) for topic_id in {topic_id for topic_id, _ in pairs}}
    return _by_bucket(pairs, [_spread(hashes[topic_id] + number & _BITS) for topic_id, number in pairs], capacity)


def numbers_order(numbers: Collection[int], capacity: int) -> list[int]:
    """Integers in a table with this number of buckets."""
    ordered = sorted(numbers)
    if not ordered or ordered[-1] < capacity:
        return ordered
    return sorted(numbers, key=lambda number: _spread(number) & capacity - 1)


# A large group needs the hashes of all its member ids for each target.
@lru_cache(16_384)
def text_hash(text: str) -> int:
    """String.hashCode() as an unsigned number."""
    units: Sequence[int] = (
        text.encode() if text.isascii() else memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    )
    while len(_POWERS) < len(units):
        _POWERS.append(_POWERS[-1] * 31 & _BITS)
    total: int = sum(map(mul, reversed(units), _POWERS))
    return total & _BITS


@lru_cache(16_384)
def _bucket_hash(text: str) -> int:
    return _spread(text_hash(text))


@lru_cache(16_384)
def _slot_hash(text: str) -> int:
    return _signed(text_hash(text)) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF


def copied_capacity(count: int) -> int:
    """The buckets of `new HashSet(collection)`."""
    return table_size(max(4 * count // 3 + 1, _SMALLEST_TABLE))


def table_size(capacity: int) -> int:
    """The buckets of a map that is made with this capacity."""
    return 1 << (capacity - 1).bit_length() if capacity > 1 else 1


def grown(capacity: int, count: int) -> int:
    """The buckets of a map that had this number of buckets, after it has grown to this number of keys."""
    while count > capacity * 3 // 4:
        capacity *= 2
    return capacity


def _by_bucket(keys: Sequence[Key], spread: Sequence[int], capacity: int) -> list[Key]:
    return [keys[place] for place in sorted(range(len(keys)), key=[one & capacity - 1 for one in spread].__getitem__)]


def _spread(hash_code: int) -> int:
    return hash_code ^ hash_code >> 16


def _signed(hash_code: int) -> int:
    return hash_code - (hash_code >> 31 << 32)


def _id_hash(topic_id: bytes) -> int:
    """org.apache.kafka.common.Uuid.hashCode()."""
    folded = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
    return (folded >> 32) ^ (folded & _BITS)
