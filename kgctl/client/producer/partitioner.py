"""Which partition a record goes to: murmur2 of the key as Kafka's Java client computes it, or a sticky choice."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """The 32-bit hash, unsigned."""
    length = len(key)
    hashed = _SEED ^ length
    whole = length & ~3
    for (word,) in struct.iter_unpack("<I", memoryview(key)[:whole]):
        word = word * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        hashed = hashed * _MULTIPLIER & _MASK ^ word
    if length > whole:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    return hashed ^ hashed >> 15


def partition_of_key(key: bytes, partition_count: int) -> int:
    """The partition of a keyed record: stays the same as long as the topic has as many partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class StickyPartition:
    """One partition for all records without a key until a batch is full, then another (KIP-480, KIP-794).

    `choose(n)` draws a number below n. Records that are spread one by one make small batches and many requests.
    """

    def __init__(self, switch_after_bytes: int, choose: Callable[[int], int]) -> None:
        self._switch_after_bytes = switch_after_bytes
        self._choose = choose
        self._current: int | None = None
        self._taken_bytes = 0

    def partition(self, available: Sequence[int], size_bytes: int) -> int:
        """Where the next keyless record of that size goes; `available` are the partitions that have a leader."""
        current = self._current
        if current is None or current not in available or self._taken_bytes >= self._switch_after_bytes:
            current = self._current = available[self._choose(len(available))]
            self._taken_bytes = 0
        self._taken_bytes += size_bytes
        return current
