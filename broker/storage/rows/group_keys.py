"""Ranges of keys of __consumer_offsets, as bytes: all offsets of one group are neighbours in the order of the keys.

Key versions 0 and 1 are committed offsets (group, topic, partition), version 2 is group metadata (group); those from 3 to 16
belong to groups of newer protocols.
"""

from __future__ import annotations

OFFSET_KEYS = b"\x00\x01"
METADATA_KEYS = b"\x00\x02"
AFTER_METADATA_KEYS = b"\x00\x11"


def kafka_string(text: str) -> bytes:
    """The text with its length before it, as a key holds it."""
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big") + encoded


def offset_prefix(group_id: str) -> bytes:
    """The common prefix of all offset keys of one group."""
    return OFFSET_KEYS + kafka_string(group_id)


def group_of(key: bytes) -> tuple[bytes, str]:
    """Return (prefix, group id) of an offset key or of its prefix."""
    end = 4 + int.from_bytes(key[2:4], "big")
    return key[:end], key[4:end].decode()


def after(prefix: bytes) -> bytes:
    """The first key after all keys that begin with `prefix`."""
    number = int.from_bytes(prefix, "big") + 1
    return number.to_bytes(len(prefix), "big")
