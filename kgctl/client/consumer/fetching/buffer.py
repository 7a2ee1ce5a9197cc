"""What was fetched ahead of the application: a queue of answers per partition. Kafka's FetchBuffer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from kgctl.client.consumer.fetching.completed_fetch import CompletedFetch
from kgctl.model.topic_partition import TopicPartition


class FetchBuffer:
    """Partitions have turns: the one whose answer was used up goes behind the others."""

    def __init__(self) -> None:
        self._queues: dict[TopicPartition, deque[CompletedFetch]] = {}
        self.size_bytes = 0
        # How many answers were used up or dropped so far: each one makes room for another.
        self.freed = 0

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._queues)

    def append(self, fetch: CompletedFetch) -> None:
        self._queues.setdefault(fetch.partition, deque()).append(fetch)
        self.size_bytes += fetch.size_bytes

    def first(self, partition: TopicPartition) -> CompletedFetch | None:
        queue = self._queues.get(partition)
        return queue[0] if queue else None

    def count(self, partition: TopicPartition) -> int:
        """The number of answers that wait."""
        queue = self._queues.get(partition)
        return len(queue) if queue else 0

    def end_offset(self, partition: TopicPartition) -> int | None:
        """Where the newest answer of a partition ends; None if there is none."""
        queue = self._queues.get(partition)
        return queue[-1].end_offset if queue else None

    def size_of(self, partition: TopicPartition) -> int:
        return sum(one.size_bytes for one in self._queues.get(partition, ()))

    def pop(self, partition: TopicPartition) -> None:
        """Drop the first answer of a partition, which was used up. The partition goes behind the others."""
        queue = self._queues.pop(partition)
        self.freed += 1
        self.size_bytes -= queue.popleft().size_bytes
        if queue:
            self._queues[partition] = queue

    def drop(self, partition: TopicPartition) -> None:
        for one in self._queues.pop(partition, ()):
            self.freed += 1
            self.size_bytes -= one.size_bytes
            one.drain()

    def retain(self, is_wanted: Callable[[TopicPartition], bool]) -> None:
        """Drop the answers of other partitions."""
        for one in [one for one in self._queues if not is_wanted(one)]:
            self.drop(one)

    def clear(self) -> None:
        self.retain(lambda one: False)
