"""The order in which Java's hash maps and sets iterate.

Kafka's uniform assignor fills members in this order, and takes partitions from them in this order. Buckets come one after the other,
and the keys of a bucket in the order in which they were put there. Java turns a bucket with more than eight keys into a tree or a
larger table; this is left out, so the order may then differ.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from operator import mul
from typing import TypeAlias, TypeVar

Key = TypeVar("Key", str, bytes, tuple[bytes, int])

_SMALLEST_TABLE = 16
_BITS = 0xFFFFFFFF
_AFTER_ALL_SLOTS = 1 << 64
_Place: TypeAlias = "tuple[int, int, int]"
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
    shift = _slot_shift(max(len(put) - is_last_new, most))
    put.reverse()  # the newest key of a slot comes first
    return sorted(put, key=lambda key: _slot_hash(key) >> shift)


class MembersOrder:
    """The order of `map_order(timeline_order(keys))` while keys come and go: one that does moves no others.

    A key has a place: its bucket of the map, its slot of the table of members, and a number that falls with each key that is added.
    """

    __slots__ = ("_added", "_capacity", "_keys", "_most", "_numbers", "_places", "_shift")

    def __init__(self) -> None:
        self._capacity, self._shift = _SMALLEST_TABLE, _slot_shift(0)
        self._added = self._most = 0
        self._numbers: dict[str, int] = {}
        self._places: list[_Place] = []
        self._keys: list[str] = []  # in the order of `_places`

    def add(self, key: str) -> None:
        self._added += 1
        self._numbers[key] = -self._added
        self._most = max(self._most, len(self._numbers))
        place = self._place(key)
        at = bisect_left(self._places, place)
        self._places.insert(at, place)
        self._keys.insert(at, key)

    def remove(self, key: str) -> None:
        at = bisect_left(self._places, self._place(key))
        del self._places[at], self._keys[at], self._numbers[key]

    def keys(self, joining: str | None = None, leaving: str | None = None) -> list[str]:
        """The keys in their order if one joins, which is not in the table of members yet, and another leaves."""
        self._fit(len(self._keys) + (joining is not None) - (leaving is not None))
        keys = self._keys.copy()
        if joining is not None:
            after = _bucket_hash(joining) & self._capacity - 1, _AFTER_ALL_SLOTS, 0
            keys.insert(bisect_left(self._places, after), joining)
        if leaving is not None:
            keys.remove(leaving)
        return keys

    def _fit(self, count: int) -> None:
        """Let the map have as many buckets, and the table as many slots, as they need."""
        capacity, shift = grown(_SMALLEST_TABLE, count), _slot_shift(self._most)
        if (capacity, shift) != (self._capacity, self._shift):
            self._capacity, self._shift = capacity, shift
            self._keys.sort(key=self._place)
            self._places = list(map(self._place, self._keys))

    def _place(self, key: str) -> _Place:
        return _bucket_hash(key) & self._capacity - 1, _slot_hash(key) >> self._shift, self._numbers[key]


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


def _slot_shift(most: int) -> int:
    """By how many bits a table of members that has had this number of keys shortens hashes to slots."""
    size_bits = 1
    while (most + 1) * 3 > 4 << size_bits:
        size_bits += 1
    return 64 - size_bits


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
