"""Java's hash tables, in whose order Kafka visits members and topics when it assigns partitions.

Member ids, topic names and topic ids that a walk can choose are chosen so that this order is that of their numbers; a walk in
which a broker chooses others is played again. So a recording has the same assignments whatever the ids of the day are.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

# Java's tables have 16 buckets until 12 entries, and fewer if they are copies of smaller ones.
BUCKETS = 16
SPREAD = 1 << 10


def of_text(text: str) -> int:
    """String.hashCode, unsigned."""
    hashed = 0
    for unit in text:
        hashed = (31 * hashed + ord(unit)) & 0xFFFFFFFF
    return hashed


def of_id(topic_id: bytes) -> int:
    """Uuid.hashCode, unsigned."""
    folded = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
    return (folded >> 32) ^ (folded & 0xFFFFFFFF)


def bucket(hashed: int, buckets: int = BUCKETS) -> int:
    """Where HashMap puts a key with this hash."""
    return (hashed ^ hashed >> 16) & (buckets - 1)


def some_named(stem: str, number: int, count: int) -> list[str]:
    """Names that begin with `stem` and have this number as their bucket, in tables of up to 1,024 buckets."""
    names = (f"{stem}{suffix}" for suffix in itertools.count())
    fitting = (name for name in names if bucket(of_text(name), SPREAD) == number)
    return list(itertools.islice(fitting, count))


@cache
def named(stem: str, number: int) -> str:
    return some_named(stem, number, 1)[0]


def is_in_order(topic_ids: Sequence[bytes]) -> bool:
    """Whether ids are visited in this order in tables of any size, and compare in it as Java's signed numbers."""
    hashes = [of_id(one) for one in topic_ids]
    for buckets in (4, 8, BUCKETS):
        places = [bucket(one, buckets) for one in hashes]
        if places != sorted(places):
            return False
    values = [int.from_bytes(one[:8], "big", signed=True) for one in topic_ids]
    return len(set(places)) == len(places) and values == sorted(values)


def chosen(candidates: Sequence[Sequence[bytes]], room: float) -> tuple[bytes, ...] | None:
    """One id of each slot such that they are in order, with as much room as possible for another behind them."""
    fitting = filter(is_in_order, itertools.product(*candidates))
    best = max(fitting, key=lambda ids: room_behind(ids[-1]), default=None)
    return best if best and room_behind(best[-1]) >= room else None


def room_behind(topic_id: bytes) -> float:
    """The share of ids that could follow this one."""
    last = bucket(of_id(topic_id))
    places = sum(one > last and one % 8 >= last % 8 and one % 4 >= last % 4 for one in range(BUCKETS))
    return places / BUCKETS * ((1 << 63) - int.from_bytes(topic_id[:8], "big", signed=True)) / (1 << 64)
