"""A record to write, and the batch that carries it."""

from __future__ import annotations

from typing import TypeAlias

from broker.light_dataclasses import dataclass, field
from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition

Headers: TypeAlias = "tuple[tuple[str, bytes | None], ...]"

# Bytes of one record besides key, value and headers: length, attributes, timestamp and offset deltas, three counts.
RECORD_OVERHEAD_BYTES = 16
BATCH_OVERHEAD_BYTES = 61
# Memory of one record's objects besides its bytes; without it, short records would exceed the buffer by far.
RECORD_MEMORY_BYTES = 200


@dataclass(slots=True)
class OutgoingRecord:
    """The producer chooses `partition` and `timestamp_ms` where they are None.

    `number` identifies the record in error messages, as the caller counts its records.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    number: int = 0

    def size_bytes(self) -> int:
        """An upper estimate of the record's uncompressed size in a batch."""
        size = RECORD_OVERHEAD_BYTES + len(self.value or b"") + len(self.key or b"")
        for name, content in self.headers:
            size += 10 + len(name) * 4 + len(content or b"")
        return size


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one partition that are sent, acknowledged and retried together.

    `position` counts the records that this producer sent to the partition before this batch.
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
        """How much of the buffer the batch takes."""
        return self.size_bytes + len(self.records) * RECORD_MEMORY_BYTES

    @property
    def base_sequence(self) -> int:
        """Sequences are 31 bits wide and wrap around to 0."""
        return self.position & 0x7FFFFFFF

    def describe(self, noun: str) -> str:
        """The records for error messages: `line 3`, `lines 3 to 9`."""
        first, last = self.records[0].number, self.records[-1].number
        return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}"
