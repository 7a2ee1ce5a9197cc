"""The hash of the topics that a group subscribes to: if it differs from the stored one, the group needs another target assignment.

It is that of Kafka 4.1 (org.apache.kafka.coordinator.group.Utils: XXH3 over a stream of fields), so that a group that Kafka has
stored looks unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from struct import Struct

from xxhash import xxh3_64_digest, xxh3_64_intdigest

from broker.cores.groups.topics import TopicCatalog

# The version of the hash, and the halves of the topic id. Java's stream is little-endian.
_HEAD = Struct("<bQQ")
_HALVES = Struct(">QQ")
_INT = Struct("<i")
_VERSION = 0
_Racks = frozenset[str]


def metadata_hash(topics: Iterable[str], catalog: TopicCatalog) -> int:
    """A number of 64 bits, with sign, that depends on the ids, names, partition counts and racks of the topics that exist.

    0 if none exists.
    """
    hashes = []
    for topic in sorted(topics):
        topic_id, count = catalog.topic_id(topic), catalog.partition_count(topic)
        if topic_id is not None and count is not None:
            common = catalog.common_racks(topic_id)
            if common is not None:
                hashes.append(_digest_alike(topic, topic_id, common, count))
            else:
                racks = [catalog.racks(topic_id, partition) for partition in range(count)]
                hashes.append(xxh3_64_digest(_fields(topic, topic_id, racks)))
    if not hashes:
        return 0
    # A digest is big-endian.
    hashed = xxh3_64_intdigest(b"".join(digest[::-1] for digest in hashes))
    return hashed - (1 << 64) if hashed >> 63 else hashed


@lru_cache(4096)
def _digest_alike(topic: str, topic_id: bytes, racks: _Racks, count: int) -> bytes:
    return xxh3_64_digest(_fields(topic, topic_id, [racks] * count))


def _fields(topic: str, topic_id: bytes, racks: Sequence[_Racks]) -> bytes:
    """What Kafka hashes of a topic; `racks` are those of each partition."""
    fields = [_HEAD.pack(_VERSION, *_HALVES.unpack(topic_id)), _text(topic), _INT.pack(len(racks))]
    for partition, found in enumerate(racks):
        fields.append(_INT.pack(partition))
        for text in map(_text, sorted(found, key=_java_order)):
            # Once for Kafka, once for the stream, which puts the length behind a text.
            fields += text[-_INT.size :], text
    return b"".join(fields)


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le")
    return encoded + _INT.pack(len(encoded) // 2)


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be")
