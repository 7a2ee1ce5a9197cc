"""Chooses the partition of a keyed record: murmur2 of the key, as in Kafka's Java client."""

from __future__ import annotations

import struct

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
