"""A blocking producer for one topic. `sender` decides what to send and when to retry."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import TypeVar

from broker.light_dataclasses import dataclass, field, replace
from broker.protocol.compression import Codec
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from broker.protocol.record_batch import Record, build_batch
from kgctl.client.net.cluster import Node
from kgctl.client.net.connection import Connection
from kgctl.client.net.connector import Connector
from kgctl.client.net.errors import KgctlError, TimedOut, Unreachable, missing_partition
from kgctl.client.net.steps import Steps
from kgctl.client.net.waiting import wait_for_answers
from kgctl.client.producer.accumulator import RecordAccumulator
from kgctl.client.producer.initialization import init_producer_id, open_topic
from kgctl.client.producer.partitioner import StickyPartition, partition_of_key
from kgctl.client.producer.records import Batch, OutgoingRecord
from kgctl.client.producer.sender import Delivery, Sender, SenderSettings, Sending
from kgctl.client.producer.tally import Tally
from kgctl.client.producer.transaction import (
    EXPLICIT_PRODUCE_VERSION,
    FEATURE,
    IMPLICIT_LEVEL,
    OutcomeUnknown,
    ProducerIdentity,
    Transaction,
    TransactionSettings,
)
from kgctl.client.producer.transaction_requests import add_partitions, end_transaction, init_producer
from kgctl.model.topic_partition import TopicPartition

T = TypeVar("T")

# Version 13 names topics by id only.
MAX_PRODUCE_VERSION = 12
# The longest wait when only another broker's answer can change what may be sent.
_BLOCKED_WAIT_SECONDS = 0.05
_LOOKUP_PAUSES_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """Kafka's producer options: compression.type, batch.size, linger.ms, buffer.memory; the rest in `sender`."""

    codec: Codec = Codec.NONE
    batch_bytes: int = 65_536
    linger_ms: int = 5
    buffer_bytes: int = 33_554_432
    sender: SenderSettings = field(default_factory=SenderSettings)
    transaction: TransactionSettings | None = None


@dataclass(slots=True)
class _Link:
    """A connection to a node and the requests in flight on it, in order, each with its deadline."""

    connection: Connection
    version: int
    unanswered: deque[tuple[Sending, float]] = field(default_factory=deque)


class Producer:
    """`send` queues records, `poll` sends them and receives answers, `flush` waits until all are acknowledged.

    Raises the error of a batch that retries cannot deliver; `tally` has what was acknowledged until then.

    With transactions, each record belongs to one: between `begin_transaction` and `commit_transaction` or
    `abort_transaction`. Then errors are `TransactionFailed`, and `tally` has what was committed.
    """

    def __init__(self, connector: Connector, topic: str, settings: ProducerSettings) -> None:
        self.topic = topic
        self.tally = Tally()
        self._connector, self._settings = connector, settings
        self._accumulator = RecordAccumulator(settings.batch_bytes, settings.linger_ms, settings.buffer_bytes)
        self._transaction: Transaction | None = None
        if settings.transaction is not None:
            settings = replace(
                settings, sender=replace(settings.sender, transactional_id=settings.transaction.transactional_id)
            )
        self._sender = Sender(self._accumulator, settings.sender, self._encode)
        self._sticky = StickyPartition(settings.batch_bytes, random.randrange)
        self._identity: ProducerIdentity | None = None
        self._leaders: dict[TopicPartition, Node] = {}
        self._available: list[int] = []
        self._links: dict[Node, _Link] = {}
        self._lookup_at = 0.0
        self._failed_lookups = 0
        self._uncommitted: list[Delivery] = []
        self.partition_count = 0
        self.has_created_topic = False

    @property
    def is_acknowledged(self) -> bool:
        """Whether `tally` counts acknowledged records, or with acks=0 only sent ones."""
        return self._settings.sender.acks != 0

    def open(self, timeout: float) -> None:
        """Look up the topic, which the broker may create, and get a producer id."""
        opened = self._connector.run(open_topic(self._connector.cluster, self.topic), timeout)
        self.partition_count, self.has_created_topic = opened.partition_count, opened.was_created
        if self._settings.transaction is not None:
            is_implicit = self._connector.cluster.feature_level(FEATURE) >= IMPLICIT_LEVEL
            self._transaction = Transaction(self._settings.transaction, is_implicit=is_implicit)
            self._initialize(self._transaction, timeout)
        elif self._settings.sender.idempotent:
            self._identity = self._connector.run(init_producer_id(self._connector.cluster, self.topic), timeout)
        self._look_up_leaders()

    def check_partition(self, partition: int | None) -> None:
        """Raises NotFound if the topic does not have the partition."""
        if partition is not None and partition >= self.partition_count:
            raise missing_partition(self.topic, partition, self.partition_count)

    def send(self, record: OutgoingRecord) -> bool:
        """Queue one record. False if the buffer is full: poll, then send it again."""
        if record.timestamp_ms is None:
            record.timestamp_ms = time.time_ns() // 1_000_000
        partition = TopicPartition(self.topic, self._choose_partition(record))
        if not self._accumulator.append(partition, record, _now_ms()):
            return False
        if self._transaction is not None:
            self._transaction.use(partition)
        return True

    def poll(self, timeout: float, *, watch: Collection[int] = (), flush: bool = False) -> set[int]:
        """Send what is due and receive answers, for at most `timeout` seconds or until one arrives.

        Returns the descriptors of `watch` that are readable.
        """
        self._send_due(flush)
        readable = self._receive_due(self._wait_seconds(timeout), watch)
        failure = self._sender.failure
        if failure and not self._sender.in_flight:
            raise failure if self._transaction is None else self._transaction.fail(failure, _now_ms())
        return readable

    def flush(self) -> None:
        """Send everything and wait until it is acknowledged, or fails."""
        while not (self._accumulator.is_empty and self._sender.is_idle):
            self.poll(1.0, flush=True)

    def begin_transaction(self, timeout: float) -> None:
        """The records that follow belong to one transaction."""
        transaction = self._transactional()
        if transaction.needs_new_epoch:
            self._initialize(transaction, timeout)
        transaction.begin(_now_ms())

    def commit_transaction(self, timeout: float) -> None:
        """Wait until all records are acknowledged, and commit them.

        Raises TransactionFailed if it must be aborted, OutcomeUnknown if committing again may succeed.
        """
        transaction = self._transactional()
        self.flush()
        if transaction.finish(commit=True):
            try:
                self._end(transaction, commit=True, timeout=timeout)
            except (TimedOut, Unreachable) as error:
                raise OutcomeUnknown(error) from error
        for delivery in self._uncommitted:
            self.tally.add(delivery)
        self._uncommitted.clear()

    def abort_transaction(self, timeout: float) -> None:
        """Drop what is queued, wait for the answers in flight, and abort the transaction."""
        transaction = self._transactional()
        deadline = time.monotonic() + timeout
        # A batch that arrives after the abort would open the transaction again.
        while self._sender.in_flight and time.monotonic() < deadline:
            self._receive_due(deadline - time.monotonic())
        for node in list(self._links):
            if self._links[node].unanswered:
                self._drop(node, TimedOut(f"{node.endpoint}: no answer in time"))
        if self._sender.discard():
            transaction.lose_sequences()
        self._uncommitted.clear()
        if transaction.finish(commit=False):
            self._end(transaction, commit=False, timeout=max(1.0, deadline - time.monotonic()))

    def close(self) -> None:
        """Close the connections; records that were not flushed are lost."""
        for link in self._links.values():
            link.connection.close()
        self._links.clear()

    # --- records ---

    def _choose_partition(self, record: OutgoingRecord) -> int:
        if record.partition is not None:
            return record.partition
        if record.key is not None:
            return partition_of_key(record.key, self.partition_count)
        return self._sticky.partition(self._available, record.size_bytes())

    def _encode(self, batch: Batch) -> bytes:
        records = [
            Record(delta, record.timestamp_ms or 0, record.key, record.value, record.headers)
            for delta, record in enumerate(batch.records)
        ]
        identity = self._identity if self._transaction is None else self._transaction.identity
        if identity is None:
            return build_batch(records, codec=self._settings.codec)
        return build_batch(
            records,
            codec=self._settings.codec,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=self._transaction is not None,
        )

    def _count(self) -> None:
        if self._transaction is None:
            for delivery in self._sender.delivered:
                self.tally.add(delivery)
        else:
            self._uncommitted += self._sender.delivered
        self._sender.delivered.clear()

    # --- transactions ---

    def _transactional(self) -> Transaction:
        assert self._transaction is not None, "the producer has no transactional id, or is not open"
        return self._transaction

    def _initialize(self, transaction: Transaction, timeout: float) -> None:
        """Get a producer id, or a new epoch for the id of the transactions before."""
        name, timeout_ms = transaction.settings.transactional_id, transaction.settings.timeout_ms
        steps = init_producer(self._connector.cluster, name, timeout_ms, transaction.identity)
        self._coordinated(transaction, steps, timeout, transaction.initialized)

    def _add_partitions(self, transaction: Transaction) -> None:
        partitions = transaction.unadded()
        if partitions:
            name = transaction.settings.transactional_id
            steps = add_partitions(self._connector.cluster, name, transaction.identity, partitions)
            seconds = self._settings.sender.delivery_timeout_ms / 1000
            try:
                self._coordinated(transaction, steps, seconds, lambda _: transaction.added(partitions))
            except (TimedOut, Unreachable) as error:
                raise transaction.fail(error, _now_ms()) from error

    def _end(self, transaction: Transaction, *, commit: bool, timeout: float) -> None:
        steps = end_transaction(
            self._connector.cluster,
            transaction.settings.transactional_id,
            transaction.identity,
            commit=commit,
            is_implicit=transaction.is_implicit,
        )
        self._coordinated(transaction, steps, timeout, transaction.finished)

    def _coordinated(
        self, transaction: Transaction, steps: Steps[T], timeout: float, then: Callable[[T], None]
    ) -> None:
        """Ask the coordinator, and pass on its answer. Raises TransactionFailed; TimedOut or Unreachable without an answer."""
        before = transaction.identity
        try:
            answer = self._connector.run(steps, timeout)
        except (TimedOut, Unreachable):
            raise
        except KgctlError as error:
            raise transaction.fail(error, _now_ms(), by_coordinator=True) from error
        then(answer)
        if transaction.identity != before:
            self._sender.restart_sequences(is_known=transaction.identity.producer_id == before.producer_id)

    # --- sockets ---

    def _send_due(self, flush: bool) -> None:
        if self._sender.stale and time.monotonic() >= self._lookup_at:
            self._look_up_leaders()
        if self._transaction is not None:
            self._add_partitions(self._transaction)
        for sending in self._sender.next_sends(self._leaders, _now_ms(), flush=flush):
            if not self._sender.may_send(sending):
                self._sender.hold_back(sending, _now_ms())
                continue
            if self._transaction is not None:
                self._transaction.added(batch.partition for batch in sending.batches)
            deadline = time.monotonic() + self._settings.sender.request_timeout_ms / 1000
            response = ProduceResponse if self._settings.sender.acks else None
            try:
                link = self._link(sending.node, deadline)
                link.connection.send(sending.request, link.version, response, deadline)
            except KgctlError as error:
                self._sender.on_failure(sending, error, _now_ms())
                self._drop(sending.node, error)
                continue
            if response is None:
                self._sender.on_sent_without_answer(sending)
            else:
                link.unanswered.append((sending, deadline))

    def _link(self, node: Node, deadline: float) -> _Link:
        link = self._links.get(node)
        if link is None:
            is_explicit = self._transaction is not None and not self._transaction.is_implicit
            highest = EXPLICIT_PRODUCE_VERSION if is_explicit else MAX_PRODUCE_VERSION
            link = self._links[node] = _Link(*self._connector.link(node, ProduceRequest, highest, deadline))
        return link

    def _receive_due(self, timeout: float, watch: Collection[int] = ()) -> set[int]:
        """Receive answers until one arrives, the time is up or a descriptor of `watch` is readable; returns those."""
        waiting = {link.connection: node for node, link in self._links.items() if link.unanswered}
        arrived, readable = wait_for_answers(waiting, timeout, watch=watch)
        for connection in arrived:
            self._receive(waiting[connection])
        self._drop_overdue()
        self._count()
        return readable

    def _receive(self, node: Node) -> None:
        link = self._links[node]
        sending, deadline = link.unanswered[0]
        try:
            _, response = link.connection.receive(deadline)
        except KgctlError as error:
            self._drop(node, error)
            return
        link.unanswered.popleft()
        assert isinstance(response, ProduceResponse)
        self._sender.on_response(sending, response, _now_ms())

    def _drop_overdue(self) -> None:
        now = time.monotonic()
        for node, link in list(self._links.items()):
            if link.unanswered and link.unanswered[0][1] <= now:
                self._drop(node, TimedOut(f"{node.endpoint}: no answer in time"))

    def _drop(self, node: Node, error: KgctlError) -> None:
        """Close the connection to a node; the requests in flight on it get no answer."""
        link = self._links.pop(node, None)
        if link is None:
            return
        link.connection.close()
        for sending, _ in link.unanswered:
            self._sender.on_failure(sending, error, _now_ms())

    def _look_up_leaders(self) -> None:
        """Look up the leader of each partition; again a little later if the cluster cannot be reached."""
        wanted = [TopicPartition(self.topic, index) for index in range(self.partition_count)]
        for partition in self._sender.stale:
            self._connector.cluster.forget_leader(partition)
        pause = _LOOKUP_PAUSES_SECONDS[min(self._failed_lookups, len(_LOOKUP_PAUSES_SECONDS) - 1)]
        try:
            found = self._connector.run(
                self._connector.cluster.leaders(wanted), self._settings.sender.request_timeout_ms / 1000
            )
        except (Unreachable, TimedOut):
            self._failed_lookups += 1
        else:
            self._failed_lookups = 0
            self._leaders = {partition: node for partition in wanted if isinstance(node := found[partition], Node)}
            self._available = [partition.partition for partition in self._leaders] or list(range(self.partition_count))
            self._sender.stale.clear()
        self._lookup_at = time.monotonic() + pause

    def _wait_seconds(self, timeout: float) -> float:
        wake_at = self._sender.wake_at_ms()
        if wake_at is not None:
            due = (wake_at - _now_ms()) / 1000
            timeout = min(timeout, due if due > 0 else _BLOCKED_WAIT_SECONDS)
        if self._sender.stale:
            timeout = min(timeout, max(0.0, self._lookup_at - time.monotonic()))
        deadlines = [link.unanswered[0][1] for link in self._links.values() if link.unanswered]
        return min([timeout, *(max(0.0, deadline - time.monotonic()) for deadline in deadlines)])


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
