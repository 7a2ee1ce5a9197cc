"""Counts acknowledged records per partition."""

from __future__ import annotations

from broker.light_dataclasses import dataclass, field
from kgctl.client.producer.core.batch import Batch
from kgctl.model.topic_partition import TopicPartition


@dataclass(slots=True)
class PartitionTally:
    """Offsets are None while no acknowledgement has named one (acks=0)."""

    records: int = 0
    payload_bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None


@dataclass(slots=True)
class Tally:
    partitions: dict[TopicPartition, PartitionTally] = field(default_factory=dict)

    @property
    def records(self) -> int:
        return sum(one.records for one in self.partitions.values())

    @property
    def payload_bytes(self) -> int:
        """Keys and values, uncompressed."""
        return sum(one.payload_bytes for one in self.partitions.values())

    def add(self, batch: Batch) -> None:
        """Count a batch that was acknowledged."""
        one = self.partitions.setdefault(batch.partition, PartitionTally())
        one.records += batch.count
        one.payload_bytes += sum(size for _, size in batch.tags or ())
        base = batch.base_offset
        if base >= 0:
            last = base + batch.count - 1
            one.first_offset = base if one.first_offset is None else min(one.first_offset, base)
            one.last_offset = last if one.last_offset is None else max(one.last_offset, last)
