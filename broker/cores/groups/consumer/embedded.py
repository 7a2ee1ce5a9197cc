"""The consumer protocol inside the classic one: subscriptions and assignments of classic members, which name topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from broker.cores.groups.topics import TopicCatalog, named_partitions
from broker.protocol.consumer_protocol import ConsumerProtocolAssignment, encode_blob

_VERSION_BYTES = 2


def by_id(rows: Iterable[Any], catalog: TopicCatalog) -> dict[bytes, list[int]]:
    """The partitions of rows with `topic` and `partitions`, by topic id. Those that do not exist are left out: a topic may have been
    deleted, and created again with fewer.
    """
    found: dict[bytes, list[int]] = {}
    for row in rows:
        topic_id, count = catalog.topic_id(row.topic), catalog.partition_count(row.topic) or 0
        if topic_id is not None:
            found[topic_id] = [partition for partition in row.partitions if 0 <= partition < count]
    return found


def encoded_assignment(owned: Mapping[bytes, Collection[int]], subscription: bytes, catalog: TopicCatalog) -> bytes:
    """The assignment as a SyncGroup answer has it, in the version of the member's subscription."""
    rows = [
        ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=partitions)
        for _, name, partitions in named_partitions(owned, catalog)
    ]
    version = int.from_bytes(subscription[:_VERSION_BYTES], "big", signed=True)
    newest = ConsumerProtocolAssignment.VERSIONS[-1]
    return encode_blob(ConsumerProtocolAssignment(assigned_partitions=rows), min(max(version, 0), newest))
