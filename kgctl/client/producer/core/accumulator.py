"""Collects records into batches per partition within a bounded buffer, and decides which of them are due."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator

from broker.light_dataclasses import dataclass
from broker.protocol.compression import Codec
from kgctl.client.network.metadata import Metadata
from kgctl.client.producer.core.batch import Batch, Headers, Waiting
from kgctl.client.producer.core.buffer import Buffer
from kgctl.client.producer.core.idempotence import Idempotence
from kgctl.client.producer.core.sticky import StickyPartition
from kgctl.model.topic_partition import TopicPartition

# KIP-580: each wait is twice as long, give or take a fifth.
_BACKOFF_BASE, _BACKOFF_JITTER = 2, 0.2


@dataclass(frozen=True, slots=True)
class AccumulatorSettings:
    """Kafka's options of the same names: batch.size, linger.ms, compression.type, ..."""

    batch_bytes: int = 16_384
    linger_ms: int = 5
    codec: Codec = Codec.NONE
    level: int | None = None
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1000
    delivery_timeout_ms: int = 120_000
    max_request_bytes: int = 1_048_576
    is_adaptive: bool = True
    availability_timeout_ms: int = 0


class Queue:
    """The batches of one partition that wait to be sent, in order. Records are added to the last one."""

    __slots__ = ("batches", "is_muted", "partition")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.batches: deque[Batch] = deque()
        self.is_muted = False


class TopicQueues:
    """The queues of one topic, and its sticky partition."""

    __slots__ = ("name", "queues", "sticky")

    def __init__(self, name: str, sticky: StickyPartition) -> None:
        self.name, self.sticky = name, sticky
        self.queues: dict[int, Queue] = {}


@dataclass(slots=True)
class Ready:
    """What `ready` finds: nodes with something to send, when more will be due, topics with a partition without a leader."""

    nodes: dict[int, None]
    check_at_ms: int | None
    leaderless: set[str]


class Accumulator:
    """`idempotence` assigns sequences; None without idempotence."""

    def __init__(
        self,
        settings: AccumulatorSettings,
        buffer: Buffer,
        metadata: Metadata,
        idempotence: Idempotence | None,
        randomness: random.Random,
        waiting: Waiting,
    ) -> None:
        self.settings, self.buffer, self.metadata = settings, buffer, metadata
        self._idempotence, self._random, self._waiting = idempotence, randomness, waiting
        self._topics: dict[str, TopicQueues] = {}
        self._active: dict[Queue, None] = {}
        # When each node last had something to send, and when it last could take it.
        self._ready_at: dict[int, tuple[int, int]] = {}
        # In the order of their creation, halves in the place of their batch: the first one expires first.
        self.incomplete: dict[Batch, None] = {}
        self.flushes = 0
        self.is_closed = False

    # --- records ---

    def topic(self, name: str) -> TopicQueues:
        found = self._topics.get(name)
        if found is None:
            sticky = StickyPartition(self.settings.batch_bytes, self._random, adaptive=self.settings.is_adaptive)
            found = self._topics[name] = TopicQueues(name, sticky)
        return found

    def queue(self, topic: TopicQueues, partition: int) -> Queue:
        found = topic.queues.get(partition)
        if found is None:
            found = topic.queues[partition] = Queue(TopicPartition(topic.name, partition))
        return found

    def begin(
        self,
        queue: Queue,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        reserved_bytes: int,
        now_ms: int,
    ) -> Batch:
        """Begin a batch with the record, in the memory that is reserved for it."""
        batch = Batch(queue.partition, now_ms, reserved_bytes, self._waiting)
        batch.append(timestamp, key, value, headers, self.settings.batch_bytes)
        queue.batches.append(batch)
        self._active[queue] = None
        self.incomplete[batch] = None
        return batch

    def sent_sticky(self, topic: TopicQueues, batch: Batch, size_bytes: int) -> None:
        """Count a record that went to the sticky partition."""
        if topic.sticky.sent(size_bytes, at_boundary=batch.is_full):
            self.choose(topic)

    def rolled_over(self, topic: TopicQueues) -> bool:
        """The sticky partition's last batch is full: choose another partition before a new batch begins. Whether it did."""
        if topic.sticky.sent(0, at_boundary=True):
            self.choose(topic)
            return True
        return False

    def choose(self, topic: TopicQueues) -> int:
        """Another sticky partition."""
        count = self.metadata.partition_count(topic.name) or 1
        available = [number for number in range(count) if self._is_available(TopicPartition(topic.name, number))]
        queues = topic.queues
        queued = [len(queues[number].batches) if number in queues else 0 for number in available]
        return topic.sticky.choose(available, queued, count)

    def _is_available(self, partition: TopicPartition) -> bool:
        leader = self.metadata.leader(partition)
        if leader is None:
            return False
        timeout = self.settings.availability_timeout_ms
        if not timeout:
            return True
        ready_at, drained_at = self._ready_at.get(leader.node.node_id, (0, 0))
        return ready_at - drained_at <= timeout

    def available(self, topic: str) -> list[int]:
        """The partitions of the topic that have a leader."""
        count = self.metadata.partition_count(topic) or 0
        return [number for number in range(count) if self.metadata.leader(TopicPartition(topic, number)) is not None]

    # --- what is due ---

    @property
    def has_undrained(self) -> bool:
        return bool(self._active)

    def undrained(self) -> Iterator[Batch]:
        for queue in self._active:
            yield from queue.batches

    def ready(self, now_ms: int) -> Ready:
        """The nodes that lead a partition whose first batch is due."""
        found = Ready({}, None, set())
        is_urgent = bool(self.buffer.waiting or self.flushes or self.is_closed) or (
            self._idempotence is not None and self._idempotence.is_completing
        )
        linger = self.settings.linger_ms
        for queue in self._active:
            if queue.is_muted:
                continue
            leader = self.metadata.leader(queue.partition)
            if leader is None:
                found.leaderless.add(queue.partition.topic)
                continue
            batch = queue.batches[0]
            batch.note_leader(leader.epoch)
            if batch.attempts:
                due_ms = now_ms if batch.has_new_leader else batch.retry_at_ms
                is_due = now_ms >= due_ms
            else:
                due_ms = batch.created_ms + linger
                is_due = is_urgent or len(queue.batches) > 1 or batch.is_full or now_ms >= due_ms
            if is_due:
                found.nodes[leader.node.node_id] = None
            elif found.check_at_ms is None or due_ms < found.check_at_ms:
                found.check_at_ms = due_ms
        return found

    def note_node(self, node_id: int, now_ms: int, *, can_drain: bool) -> None:
        """Remember whether a node that has something to send could take it, for partitioner.availability.timeout.ms."""
        if self.settings.availability_timeout_ms:
            _, drained_at = self._ready_at.get(node_id, (now_ms, now_ms))
            self._ready_at[node_id] = (now_ms, now_ms if can_drain else drained_at)

    def drain(self, nodes: Iterable[int], now_ms: int) -> dict[int, list[Batch]]:
        """At most one batch of each partition for each of the nodes, up to max.request.size.

        Partitions that were drained go to the end of the line, so that a full request starves none of them.
        """
        taken: dict[int, list[Batch]] = {node: [] for node in nodes}
        sizes = dict.fromkeys(taken, 0)
        full: set[int] = set()
        for queue in list(self._active) if taken else ():
            leader = self.metadata.leader(queue.partition)
            if leader is None or queue.is_muted:
                continue
            node_id = leader.node.node_id
            batches = taken.get(node_id)
            if batches is None or node_id in full:
                continue
            batch = queue.batches[0]
            batch.note_leader(leader.epoch)
            if batch.attempts and now_ms < batch.retry_at_ms and not batch.has_new_leader:
                continue
            if batches and sizes[node_id] + batch.size_bytes > self.settings.max_request_bytes:
                full.add(node_id)
                continue
            if self._idempotence is not None and not self._idempotence.may_drain(batch, node_id):
                continue
            sizes[node_id] += self._take(queue, batch, now_ms)
            batches.append(batch)
        return {node: batches for node, batches in taken.items() if batches}

    def _take(self, queue: Queue, batch: Batch, now_ms: int) -> int:
        queue.batches.popleft()
        del self._active[queue]
        if queue.batches:
            self._active[queue] = None
        if self._idempotence is not None and not batch.has_sequence:
            self._idempotence.assign(batch)
        batch.drained_ms = now_ms
        return len(batch.close(self.settings.codec, self.settings.level))

    # --- what happens to batches ---

    def mute(self, partition: TopicPartition) -> None:
        """Drain no batch of the partition until `unmute`: one is in flight, and order counts."""
        self._queue_of(partition).is_muted = True

    def unmute(self, partition: TopicPartition) -> None:
        self._queue_of(partition).is_muted = False

    def requeue(self, batch: Batch, now_ms: int) -> None:
        """Send a batch again, after those with lower sequences and before new ones."""
        batch.last_attempt_ms = now_ms
        batch.retry_at_ms = now_ms + self.backoff_ms(batch.attempts)
        self._insert(batch)

    def split(self, batch: Batch) -> tuple[Batch, Batch]:
        """Replace a batch that is too large for the topic by two, to be sent at once."""
        halves = batch.split()
        order: dict[Batch, None] = {}
        for one in self.incomplete:
            order[one] = None
            if one is batch:
                order.update(dict.fromkeys(halves))
        self.incomplete = order
        for half in reversed(halves):
            half.attempts = 0
            half.is_full = True
            self._insert(half)
        self.release(batch)
        return halves

    def expired(self, now_ms: int) -> list[Batch]:
        """Take the batches that wait here since delivery.timeout.ms."""
        limit = now_ms - self.settings.delivery_timeout_ms
        out: list[Batch] = []
        for queue in list(self._active):
            while queue.batches and queue.batches[0].created_ms <= limit:
                out.append(queue.batches.popleft())
            if not queue.batches:
                del self._active[queue]
        return out

    def next_expiry_ms(self) -> int | None:
        """When the oldest batch expires, of all that are not acknowledged."""
        oldest = next(iter(self.incomplete), None)
        return None if oldest is None else oldest.created_ms + self.settings.delivery_timeout_ms

    def remove(self, batches: Iterable[Batch]) -> None:
        """Take batches out of their queues."""
        for batch in batches:
            queue = self._queue_of(batch.partition)
            if batch in queue.batches:
                queue.batches.remove(batch)
                if not queue.batches:
                    del self._active[queue]

    def release(self, batch: Batch) -> None:
        """Free the memory of a batch that was acknowledged or failed."""
        if self.incomplete.pop(batch, self) is None and batch.reserved_bytes:
            self.buffer.release(batch.reserved_bytes)

    def close(self) -> None:
        """Take no more records; what is here is due at once."""
        self.is_closed = True
        self.buffer.close()

    def backoff_ms(self, attempts: int) -> int:
        base = self.settings.retry_backoff_ms * _BACKOFF_BASE ** min(max(0, attempts - 1), 30)
        jitter = 1 + _BACKOFF_JITTER * (2 * self._random.random() - 1)
        return int(min(base, self.settings.retry_backoff_max_ms) * jitter)

    def _queue_of(self, partition: TopicPartition) -> Queue:
        return self.queue(self.topic(partition.topic), partition.partition)

    def _insert(self, batch: Batch) -> None:
        queue = self._queue_of(batch.partition)
        later = 0
        while later < len(queue.batches) and 0 <= queue.batches[later].position < batch.position:
            later += 1
        queue.batches.insert(later, batch)
        self._active[queue] = None
