"""The consumer protocol inside the classic one: subscriptions and assignments of classic members, which name topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from broker.cores.groups.topics import TopicCatalog, named_partitions
from broker.protocol.consumer_protocol import ConsumerProtocolAssignment, encode_blob

_VERSION_BYTES = 2


def by_id(rows: Iterable[Any], catalog: TopicCatalog) -> dict[bytes, list[int]]:
    """The partitions of rows with `topic` and `partitions`, by topic id. Topics that do not exist are left out."""
    found = ((catalog.topic_id(row.topic), row.partitions) for row in rows)
    return {topic_id: partitions for topic_id, partitions in found if topic_id is not None}


def encoded_assignment(owned: Mapping[bytes, Collection[int]], subscription: bytes, catalog: TopicCatalog) -> bytes:
    """The assignment as a SyncGroup answer has it, in the version of the member's subscription."""
    rows = [
        ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=partitions)
        for _, name, partitions in named_partitions(owned, catalog)
    ]
    version = int.from_bytes(subscription[:_VERSION_BYTES], "big", signed=True)
    newest = ConsumerProtocolAssignment.VERSIONS[-1]
    return encode_blob(ConsumerProtocolAssignment(assigned_partitions=rows), min(max(version, 0), newest))
