"""A record on its way to a topic, and the batch that it travels in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition

Headers: TypeAlias = "tuple[tuple[str, bytes | None], ...]"

# What one record takes beside key, value and headers: length, attributes, timestamp and offset deltas, three counts.
RECORD_OVERHEAD_BYTES = 16
BATCH_OVERHEAD_BYTES = 61
# What the objects of one record take in memory beside its bytes; without it short lines would grow far past the buffer.
RECORD_MEMORY_BYTES = 200


@dataclass(slots=True)
class OutgoingRecord:
    """`partition` and `timestamp_ms` are the producer's choice where they are None. `line` is where it was read, from 1."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    line: int = 0

    def size_bytes(self) -> int:
        """An upper estimate of the record's uncompressed size in a batch."""
        size = RECORD_OVERHEAD_BYTES + len(self.value or b"") + len(self.key or b"")
        for name, content in self.headers:
            size += 10 + len(name) * 4 + len(content or b"")
        return size


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one partition that are sent, acknowledged and retried together.

    `position`: how many records this producer has sent to the partition before it.
    """

    partition: TopicPartition
    created_ms: int
    records: list[OutgoingRecord] = field(default_factory=list)
    size_bytes: int = BATCH_OVERHEAD_BYTES
    position: int = -1
    attempts: int = 0
    encoded: bytes | None = None
    last_error: KgctlError | None = None

    @property
    def memory_bytes(self) -> int:
        """What it counts for in the buffer."""
        return self.size_bytes + len(self.records) * RECORD_MEMORY_BYTES

    @property
    def base_sequence(self) -> int:
        """Sequences are 31 bits wide and begin anew behind the largest."""
        return self.position & 0x7FFFFFFF

    def describe(self) -> str:
        """Which input it holds, for messages."""
        lines = [record.line for record in (self.records[0], self.records[-1])]
        return f"line {lines[0]}" if lines[0] == lines[1] else f"lines {lines[0]} to {lines[1]}"
