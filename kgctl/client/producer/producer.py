"""A blocking producer for one topic. `sender` decides what to send and when to retry."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from broker.protocol.compression import Codec
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from broker.protocol.record_batch import Record, build_batch
from kgctl.client.net.cluster import Node
from kgctl.client.net.connection import Connection
from kgctl.client.net.connector import Connector
from kgctl.client.net.errors import KgctlError, TimedOut, Unreachable, missing_partition
from kgctl.client.net.waiting import wait_for_answers
from kgctl.client.producer.accumulator import RecordAccumulator
from kgctl.client.producer.initialization import ProducerIdentity, init_producer_id, open_topic
from kgctl.client.producer.partitioner import StickyPartition, partition_of_key
from kgctl.client.producer.records import Batch, OutgoingRecord
from kgctl.client.producer.sender import Sender, SenderSettings, Sending
from kgctl.client.producer.tally import Tally
from kgctl.model.topic_partition import TopicPartition

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


@dataclass(slots=True)
class _Link:
    """A connection to a node and the requests in flight on it, in order, each with its deadline."""

    connection: Connection
    version: int
    unanswered: deque[tuple[Sending, float]] = field(default_factory=deque)


class Producer:
    """`send` queues records, `poll` sends them and receives answers, `flush` waits until all are acknowledged.

    Raises the error of a batch that retries cannot deliver; `tally` has what was acknowledged until then.
    """

    def __init__(self, connector: Connector, topic: str, settings: ProducerSettings) -> None:
        self.topic = topic
        self.tally = Tally()
        self._connector, self._settings = connector, settings
        self._accumulator = RecordAccumulator(settings.batch_bytes, settings.linger_ms, settings.buffer_bytes)
        self._sender = Sender(self._accumulator, settings.sender, self._encode)
        self._sticky = StickyPartition(settings.batch_bytes, random.randrange)
        self._identity: ProducerIdentity | None = None
        self._leaders: dict[TopicPartition, Node] = {}
        self._available: list[int] = []
        self._links: dict[Node, _Link] = {}
        self._lookup_at = 0.0
        self._failed_lookups = 0
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
        if self._settings.sender.idempotent:
            self._identity = self._connector.run(init_producer_id(self._connector.cluster), timeout)
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
        return self._accumulator.append(partition, record, _now_ms())

    def poll(self, timeout: float, *, watch: Collection[int] = (), flush: bool = False) -> set[int]:
        """Send what is due and receive answers, for at most `timeout` seconds or until one arrives.

        Returns the descriptors of `watch` that are readable.
        """
        self._send_due(flush)
        waiting = {link.connection: node for node, link in self._links.items() if link.unanswered}
        arrived, readable = wait_for_answers(waiting, self._wait_seconds(timeout), watch=watch)
        for connection in arrived:
            self._receive(waiting[connection])
        self._drop_overdue()
        self._count()
        if self._sender.failure and not self._sender.in_flight:
            raise self._sender.failure
        return readable

    def flush(self) -> None:
        """Send everything and wait until it is acknowledged, or fails."""
        while not (self._accumulator.is_empty and self._sender.is_idle):
            self.poll(1.0, flush=True)

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
        if self._identity is None:
            return build_batch(records, codec=self._settings.codec)
        return build_batch(
            records,
            codec=self._settings.codec,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            base_sequence=batch.base_sequence,
        )

    def _count(self) -> None:
        for delivery in self._sender.delivered:
            self.tally.add(delivery)
        self._sender.delivered.clear()

    # --- sockets ---

    def _send_due(self, flush: bool) -> None:
        if self._sender.stale and time.monotonic() >= self._lookup_at:
            self._look_up_leaders()
        for sending in self._sender.next_sends(self._leaders, _now_ms(), flush=flush):
            if not self._sender.may_send(sending):
                self._sender.hold_back(sending, _now_ms())
                continue
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
            link = self._links[node] = _Link(*self._connector.link(node, ProduceRequest, MAX_PRODUCE_VERSION, deadline))
        return link

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
