"""Collects records into batches per partition within a bounded buffer. Pure: the clock is an argument."""

from __future__ import annotations

from collections import deque

from kgctl.client.producer.records import RECORD_MEMORY_BYTES, Batch, OutgoingRecord
from kgctl.model.topic_partition import TopicPartition


class RecordAccumulator:
    """Kafka's batch.size, linger.ms and buffer.memory. A batch counts against the buffer until it is released."""

    def __init__(self, batch_bytes: int, linger_ms: int, buffer_bytes: int) -> None:
        self._batch_bytes = batch_bytes
        self._linger_ms = linger_ms
        self._buffer_bytes = buffer_bytes
        self._used_bytes = 0
        self._starved = False
        self._queues: dict[TopicPartition, deque[Batch]] = {}

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    @property
    def is_empty(self) -> bool:
        """Whether no batch waits to be sent."""
        return not any(self._queues.values())

    def append(self, partition: TopicPartition, record: OutgoingRecord, now_ms: int) -> bool:
        """Add a record after those of its partition. False if the buffer is full: retry once a batch is released.

        An empty buffer accepts a record of any size.
        """
        size = record.size_bytes()
        if self._used_bytes and self._used_bytes + size + RECORD_MEMORY_BYTES > self._buffer_bytes:
            self._starved = True
            return False
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = deque()
        if not queue or queue[-1].size_bytes + size > self._batch_bytes:
            batch = Batch(partition, now_ms)
            self._used_bytes += batch.memory_bytes
            queue.append(batch)
        batch = queue[-1]
        batch.records.append(record)
        batch.size_bytes += size
        self._used_bytes += size + RECORD_MEMORY_BYTES
        return True

    def ready(self, now_ms: int, *, flush: bool = False) -> list[TopicPartition]:
        """Partitions whose first batch is due: it is full or has lingered, the buffer is full, or `flush`."""
        is_urgent = flush or self._starved
        return [
            partition
            for partition, queue in self._queues.items()
            if queue and (is_urgent or len(queue) > 1 or self._is_due(queue[0], now_ms))
        ]

    def wake_at_ms(self) -> int | None:
        """When the next batch has lingered long enough; None if no batch waits."""
        heads = [queue[0].created_ms + self._linger_ms for queue in self._queues.values() if queue]
        return min(heads, default=None)

    def oldest(self) -> Batch | None:
        """The batch that has waited longest."""
        heads = [queue[0] for queue in self._queues.values() if queue]
        return min(heads, key=lambda batch: batch.created_ms, default=None)

    def take(self, partition: TopicPartition) -> Batch | None:
        """The first batch of the partition. It no longer grows; its bytes count until `release`."""
        queue = self._queues.get(partition)
        return queue.popleft() if queue else None

    def clear(self) -> None:
        """Drop all batches that were not taken."""
        for queue in self._queues.values():
            while queue:
                self.release(queue.popleft())

    def release(self, batch: Batch) -> None:
        """Free the buffer space of a batch that was acknowledged or failed."""
        self._used_bytes -= batch.memory_bytes
        self._starved = False

    def reclaim(self, batch: Batch) -> None:
        """Count a batch that was not built here: one half of a batch that was split."""
        self._used_bytes += batch.memory_bytes

    def _is_due(self, batch: Batch, now_ms: int) -> bool:
        return batch.size_bytes >= self._batch_bytes or now_ms >= batch.created_ms + self._linger_ms
