"""The hash of the topics that a group subscribes to: if it differs from the stored one, the group needs another target assignment."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct

from broker.cores.groups.topics import TopicCatalog

_COUNT = Struct(">i")


def metadata_hash(topics: Iterable[str], catalog: TopicCatalog) -> int:
    """A number of 64 bits, with sign, that depends on the ids, names, partition counts and racks of the topics that exist.

    0 if none exists. Kafka 4.1 hashes the same with XXH3; only the coordinator that has stored a hash reads it.
    """
    hashed = blake2b(digest_size=8)
    is_empty = True
    for topic in sorted(topics):
        topic_id, count = catalog.topic_id(topic), catalog.partition_count(topic)
        if topic_id is None or count is None:
            continue
        is_empty = False
        hashed.update(topic_id + topic.encode() + _COUNT.pack(count))
        racks = [catalog.racks(topic_id, partition) for partition in range(count)]
        if any(racks):
            hashed.update(repr([sorted(found) for found in racks]).encode())
    return 0 if is_empty else int.from_bytes(hashed.digest(), "big", signed=True)
