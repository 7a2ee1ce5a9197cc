"""The producer without I/O: accumulator, sender and transactions of one client, and the path of a record into them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass, field
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, missing_partition
from kgctl.client.network.coordinator import Coordinator
from kgctl.client.producer.core.accumulator import Accumulator, AccumulatorSettings, TopicQueues
from kgctl.client.producer.core.batch import Batch, Headers, Waiting
from kgctl.client.producer.core.buffer import Buffer, Reservation
from kgctl.client.producer.core.errors import ProducerClosed, RecordTooLarge
from kgctl.client.producer.core.identity import IdempotentProducer
from kgctl.client.producer.core.sender import Sender, SenderSettings
from kgctl.client.producer.core.states import TransactionSettings
from kgctl.client.producer.core.transactions import Transactions

if TYPE_CHECKING:
    from kgctl.client.network.client import NetworkClient

_TRANSACTION_VERSION, _IMPLICIT_LEVEL = "transaction.version", 2
# Bytes of a record besides key, value and headers, and of a batch; an upper estimate.
_RECORD_BYTES, _HEADER_BYTES, _BATCH_BYTES = 31, 10, 61
_USE_AGAIN_MS = 1000


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """Kafka's options buffer.memory and enable.idempotence; the rest is of the parts."""

    buffer_bytes: int = 33_554_432
    is_idempotent: bool = True
    accumulator: AccumulatorSettings = field(default_factory=AccumulatorSettings)
    sender: SenderSettings = field(default_factory=SenderSettings)
    transaction: TransactionSettings | None = None


class ProducerCore:
    """A participant of an engine. All calls are made under the engine's lock.

    `completed` is called when `completions` gets its first batch. `settled` is called for each batch whose outcome is known,
    before the callbacks of its records.
    """

    def __init__(
        self,
        network: NetworkClient,
        settings: CoreSettings,
        randomness: random.Random,
        waiting: Waiting,
        completed: Callable[[], None],
        settled: Callable[[Batch], None] | None = None,
    ) -> None:
        self.settings, self._network, self._waiting = settings, network, waiting
        self.metadata = network.metadata
        self.producer: IdempotentProducer | None = None
        self.transactions: Transactions | None = None
        self._backoff: Callable[[int], int] = lambda attempts: self.accumulator.backoff_ms(attempts)
        timeout_ms = settings.sender.request_timeout_ms
        if settings.transaction is not None:
            find: Callable[[int, str], Coordinator] = lambda kind, key: Coordinator(network, key, kind, randomness)  # noqa: E731
            self.transactions = self.producer = Transactions(
                settings.transaction, network, find, self._has_version_2, timeout_ms, self._backoff
            )
        elif settings.is_idempotent:
            self.producer = IdempotentProducer(network, timeout_ms, self._backoff)
        self.buffer = Buffer(settings.buffer_bytes)
        self.accumulator = Accumulator(
            settings.accumulator, self.buffer, self.metadata, self.producer, randomness, waiting
        )
        self.sender = Sender(network, self.metadata, self.accumulator, settings.sender, self.producer, self._settle)
        self.advance, self.wake_at_ms = self.sender.advance, self.sender.wake_at_ms
        self._settled, self._completed = settled, completed
        self._batch_bytes = settings.accumulator.batch_bytes
        # Batches whose callbacks must run, in order, without the lock.
        self.completions: deque[Batch] = deque()
        self._used_ms: dict[str, int] = {}
        self._available: dict[str, tuple[int, list[int]]] = {}

    def _has_version_2(self) -> bool:
        assert self.transactions is not None
        node_id = self.transactions.coordinator.node_id
        return node_id is not None and self._network.feature_level(node_id, _TRANSACTION_VERSION) >= _IMPLICIT_LEVEL

    # --- topics ---

    def use(self, topic: str, now_ms: int) -> int | None:
        """How many partitions the topic has; None while the metadata does not say. Raises why it cannot be written to."""
        if now_ms >= self._used_ms.get(topic, 0):
            self._used_ms[topic] = now_ms + _USE_AGAIN_MS
            self.metadata.use(topic, now_ms)
        count = self.metadata.partition_count(topic)
        if not count:
            error = self.metadata.error_of(topic)
            if isinstance(error, BrokerError) and not error.retriable and error.name not in _MAY_COME:
                raise error
            return None
        return count

    def no_metadata(self, topic: str, seconds: float) -> TimedOut:
        """The error of a call that waited for the metadata of a topic: with what a broker said about it, or why none is reached."""
        reason = str(self.metadata.error_of(topic) or "") or self._network.why_unreachable()
        return TimedOut(f"topic {topic!r}: no metadata within {seconds:g} s" + (f": {reason}" if reason else ""))

    def available(self, topic: str) -> list[int]:
        """The partitions of the topic that have a leader."""
        known = self._available.get(topic)
        if known is None or known[0] != self.metadata.version:
            known = self._available[topic] = (self.metadata.version, self.accumulator.available(topic))
        return known[1]

    # --- records ---

    def _memory_of(self, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        """What a batch with this record as its first one takes of the buffer. Raises RecordTooLarge."""
        size = _RECORD_BYTES + _BATCH_BYTES + len(key or b"") + len(value or b"")
        for name, content in headers:
            size += _HEADER_BYTES + len(name.encode()) + len(content or b"")
        for limit, option in (
            (self.settings.accumulator.max_request_bytes, "max.request.size"),
            (self.settings.buffer_bytes, "buffer.memory"),
        ):
            if size > limit:
                error = RecordTooLarge(f"a record of {size} bytes is larger than {option} ({limit} bytes)")
                if self.transactions is not None:
                    self.transactions.note_error(error)
                raise error
        return min(max(self._batch_bytes, size), self.buffer.total_bytes)

    def append(
        self,
        topic: TopicQueues,
        partition: int | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> Batch | None:
        """The batch that took the record as its last one. None if it needs a new batch: see `begin`.

        Without a partition, the record goes to the sticky one.
        """
        accumulator = self.accumulator
        if accumulator.is_closed:
            raise ProducerClosed("the producer is closed")
        number = partition
        while True:
            if partition is None:
                number = topic.sticky.current
                if number is None:
                    number = accumulator.choose(topic)
            queue = topic.queues.get(number)  # type: ignore[arg-type]
            if queue is None or not queue.batches:
                return None
            if self.transactions is not None:
                self.transactions.use(queue.partition)
            batch = queue.batches[-1]
            before = batch.size_bytes
            if batch.append(timestamp, key, value, headers, self._batch_bytes):
                if partition is None:
                    accumulator.sent_sticky(topic, batch, batch.size_bytes - before)
                return batch
            if partition is not None or not accumulator.rolled_over(topic):
                return None

    def begin(
        self,
        topic: TopicQueues,
        partition: int | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        now_ms: int,
        reservation: Reservation | None,
    ) -> Batch | Reservation:
        """Begin a batch with a record that `append` did not take. Returns the reservation to wait for if memory is short."""
        accumulator = self.accumulator
        number = topic.sticky.current if partition is None else partition
        if number is None:
            number = accumulator.choose(topic)
        queue = accumulator.queue(topic, number)
        if self.transactions is not None:
            self.transactions.use(queue.partition)
        if reservation is None:
            reservation = self.buffer.reserve(self._memory_of(key, value, headers))
        if not reservation.is_granted:
            return reservation
        batch = accumulator.begin(queue, timestamp, key, value, headers, reservation.size_bytes, now_ms)
        if partition is None:
            accumulator.sent_sticky(topic, batch, batch.size_bytes)
        return batch

    # --- outcomes ---

    def _settle(self, batch: Batch) -> None:
        if self._settled is not None:
            self._settled(batch)
        # Futures may be kept for long.
        batch.encoded, batch.parts, batch.is_settled = b"", [], True
        if batch.notifications is None:
            batch.is_done = True
        else:
            self.completions.append(batch)
            if len(self.completions) == 1:
                self._completed()

    # --- closing ---

    def close(self) -> None:
        """Refuse new records, send what is left, and abort an open transaction."""
        if not self.accumulator.is_closed:
            self.accumulator.close()
            self.sender.abort_open_transaction()

    @property
    def has_work(self) -> bool:
        return self.sender.has_work

    def abort(self, reason: KgctlError) -> None:
        """Fail all that is left."""
        self.accumulator.close()
        if self.transactions is not None:
            self.transactions.close()
        self.sender.abort(reason)

    @property
    def metrics(self) -> Mapping[str, float]:
        return {
            **self._network.traffic.metrics(),
            **self.sender.measures.as_metrics(),
            "requests-in-flight": self._network.in_flight(),
            "buffer-total-bytes": self.buffer.total_bytes,
            "buffer-available-bytes": self.buffer.free_bytes,
            "waiting-threads": self.buffer.waiting,
            "metadata-version": self.metadata.version,
        }


# A topic may be created, or its creation may reach the node that answered.
_MAY_COME = ("UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE")


def check_partition(topic: str, partition: int, count: int) -> KgctlError | None:
    """The error of a partition that the topic does not have."""
    return None if partition < count else missing_partition(topic, partition, count)


def run_callbacks(completions: deque[Batch], report: Callable[[BaseException], None]) -> None:
    """Call back for each record in order, without the lock. What a callback raises is reported, and hurts no other one."""
    while completions:
        batch = completions[0]
        while True:
            with batch.waiting.lock:
                notifications, batch.notifications = batch.notifications, None
                if not notifications:
                    batch.is_done = True
                    # A close by a callback, or while one runs, has done the rest meanwhile.
                    if completions and completions[0] is batch:
                        completions.popleft()
                    break
            for delivery, callback in notifications:
                try:
                    callback(delivery)
                except Exception as error:  # noqa: BLE001 - user code
                    report(error)
