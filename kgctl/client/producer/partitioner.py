"""Chooses the partition of a record: murmur2 of the key as in Kafka's Java client, or a sticky partition."""

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
    """The partition of a keyed record: stable while the partition count of the topic does not change."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class StickyPartition:
    """One partition for all records without a key until a batch is full, then another one (KIP-480, KIP-794).

    Spreading records one by one would make small batches and many requests. `choose(n)` returns a random number below n.
    """

    def __init__(self, switch_after_bytes: int, choose: Callable[[int], int]) -> None:
        self._switch_after_bytes = switch_after_bytes
        self._choose = choose
        self._current: int | None = None
        self._sent_bytes = 0

    def partition(self, available: Sequence[int], size_bytes: int) -> int:
        """The partition for the next keyless record of that size; `available` are the partitions that have a leader."""
        current = self._current
        if current is None or current not in available or self._sent_bytes >= self._switch_after_bytes:
            current = self._current = available[self._choose(len(available))]
            self._sent_bytes = 0
        self._sent_bytes += size_bytes
        return current
