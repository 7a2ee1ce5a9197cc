"""Decides which batches to send to which node, and what an answer means: sequences, retries, order. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.light_dataclasses import dataclass, field
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Node
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable
from kgctl.client.producer.accumulator import RecordAccumulator
from kgctl.client.producer.records import BATCH_OVERHEAD_BYTES, Batch
from kgctl.model.topic_partition import TopicPartition

ALL = -1
NEW_TOPIC_MS = 5000


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """Kafka's producer options: acks, request.timeout.ms, max.in.flight.requests.per.connection, max.request.size, ...

    `record_noun` is what error messages call a record: a caller that reads lines says `line`.
    """

    acks: int = ALL
    idempotent: bool = True
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    max_in_flight: int = 5
    max_request_bytes: int = 1_048_576
    retry_backoff_ms: int = 100
    record_noun: str = "record"
    transactional_id: str | None = None


@dataclass(slots=True, eq=False)
class Sending:
    """One Produce request to one node and the batches in it, at most one per partition."""

    node: Node
    request: ProduceRequest
    batches: list[Batch]


@dataclass(frozen=True, slots=True)
class Delivery:
    """An acknowledged batch. The offset is -1 if the broker does not name it (acks=0, or a duplicate it no longer remembers)."""

    batch: Batch
    base_offset: int


@dataclass(slots=True)
class _Lane:
    """The batches of one partition that are in flight or wait for a retry.

    After a failure nothing is sent until every request in flight is answered. Then the failed batches are sent again in
    their original order, before new ones. So a retry neither reorders records nor, with sequences, duplicates them.
    """

    next_position: int = 0
    in_flight: list[Batch] = field(default_factory=list)
    retries: list[Batch] = field(default_factory=list)
    retry_at_ms: int = 0
    settling: bool = False
    # Whether the broker has stored one of our sequences. It accepts any first sequence of an unknown producer: until
    # then a batch could overtake one that fails, which could no longer be written.
    has_sequence: bool = False
    node: Node | None = None

    def head(self) -> int:
        return min(batch.position for batch in (*self.in_flight, *self.retries))


class Sender:
    """`encode` serializes a batch. It is called once per batch, when its sequence is fixed."""

    def __init__(
        self, accumulator: RecordAccumulator, settings: SenderSettings, encode: Callable[[Batch], bytes]
    ) -> None:
        self._accumulator = accumulator
        self._settings = settings
        self._encode = encode
        self._lanes: dict[TopicPartition, _Lane] = {}
        self._per_node: dict[Node, int] = {}
        self.stale: set[TopicPartition] = set()
        self.delivered: list[Delivery] = []
        self.failure: KgctlError | None = None

    @property
    def in_flight(self) -> int:
        """Requests without an answer."""
        return sum(self._per_node.values())

    @property
    def is_idle(self) -> bool:
        """Whether everything taken from the accumulator has been acknowledged or has failed."""
        return not self.in_flight and not any(lane.retries for lane in self._lanes.values())

    def next_sends(self, leaders: Mapping[TopicPartition, Node], now_ms: int, *, flush: bool = False) -> list[Sending]:
        """The requests to send now. None after a failure: only the answers in flight are still awaited."""
        self._expire(now_ms)
        if self.failure:
            return []
        ready = [partition for partition, lane in self._lanes.items() if lane.retries]
        ready += [partition for partition in self._accumulator.ready(now_ms, flush=flush) if partition not in ready]
        sends: list[Sending] = []
        while taken := self._take_batches(ready, leaders, now_ms):
            for node, batches in taken.items():
                self._per_node[node] = self._per_node.get(node, 0) + 1
                sends.append(Sending(node, self._request(batches), batches))
            still = set(self._accumulator.ready(now_ms, flush=flush))
            ready = [partition for partition in ready if partition in still or self._lanes[partition].retries]
        return sends

    def wake_at_ms(self) -> int | None:
        """When `next_sends` may have something new even if no answer arrives."""
        times = [lane.retry_at_ms for lane in self._lanes.values() if lane.retries and not lane.settling]
        linger = self._accumulator.wake_at_ms()
        return min((*times, linger) if linger is not None else times, default=None)

    def may_send(self, sending: Sending) -> bool:
        """Whether no earlier batch has failed since the request was made. If one has, pass the request to `hold_back`."""
        return not any(self._lanes[batch.partition].settling for batch in sending.batches)

    def hold_back(self, sending: Sending, now_ms: int) -> None:
        """Queue the batches of a request that was not sent again, after those that failed."""
        self._per_node[sending.node] -= 1
        for batch in sending.batches:
            batch.attempts -= 1
            self._queue_again(batch, now_ms)

    def on_response(self, sending: Sending, response: ProduceResponse, now_ms: int) -> None:
        """Handle an answer; each partition has its own result."""
        self._per_node[sending.node] -= 1
        rows = {(topic.name, row.index): row for topic in response.responses for row in topic.partition_responses}
        for batch in sending.batches:
            row = rows.get(batch.partition)
            if row is None:
                self._retry(batch, NotAnswered(batch), now_ms)
            else:
                self._settle(batch, row, now_ms)

    def on_sent_without_answer(self, sending: Sending) -> None:
        """Count a request with acks=0, which the broker does not answer."""
        self._per_node[sending.node] -= 1
        for batch in sending.batches:
            self._done(batch, -1)

    def on_failure(self, sending: Sending, error: KgctlError, now_ms: int) -> None:
        """Handle a request without an answer: its batches may have been written or not."""
        self._per_node[sending.node] -= 1
        for batch in sending.batches:
            if error.retriable or isinstance(error, TimedOut):
                self._retry(batch, error, now_ms)
            else:
                self._fail(batch, error)

    def discard(self) -> bool:
        """Forget the failure and drop everything that is not acknowledged. Nothing may be in flight.

        Returns whether sequences are lost: then the producer needs a new epoch.
        """
        assert not self.in_flight
        lost = self.failure is not None
        for lane in self._lanes.values():
            lost = lost or bool(lane.retries)
            for batch in lane.retries:
                self._accumulator.release(batch)
            lane.retries.clear()
        self._accumulator.clear()
        self.failure = None
        return lost

    def restart_sequences(self, *, is_known: bool) -> None:
        """Continue with a new epoch, for which sequences start at 0. `is_known`: the producer id stays the same."""
        assert self.is_idle
        self._lanes = {
            partition: _Lane(has_sequence=is_known and lane.has_sequence) for partition, lane in self._lanes.items()
        }

    # --- choosing ---

    def _take_batches(
        self, ready: list[TopicPartition], leaders: Mapping[TopicPartition, Node], now_ms: int
    ) -> dict[Node, list[Batch]]:
        """At most one batch per partition, and one request per node."""
        taken: dict[Node, list[Batch]] = {}
        sizes: dict[Node, int] = {}
        for partition in ready:
            node = leaders.get(partition)
            if node is None:
                self.stale.add(partition)
                continue
            lane = self._lanes.setdefault(partition, _Lane())
            full = sizes.get(node, 0) >= self._settings.max_request_bytes
            if (
                full
                or self._per_node.get(node, 0) >= self._settings.max_in_flight
                or not self._lane_may_send(lane, node, now_ms)
            ):
                continue
            batch = self._next_batch(lane, partition)
            if batch is None:
                continue
            lane.in_flight.append(batch)
            lane.node = node
            batch.attempts += 1
            sizes[node] = sizes.get(node, 0) + batch.size_bytes
            taken.setdefault(node, []).append(batch)
        return taken

    def _lane_may_send(self, lane: _Lane, node: Node, now_ms: int) -> bool:
        if lane.settling or (lane.retries and now_ms < lane.retry_at_ms):
            return False
        if not lane.in_flight:
            return True
        # Without sequences the broker cannot detect that a batch overtook another one: send one at a time.
        return (
            self._settings.idempotent
            and lane.has_sequence
            and lane.node == node
            and len(lane.in_flight) < self._settings.max_in_flight
        )

    def _next_batch(self, lane: _Lane, partition: TopicPartition) -> Batch | None:
        if lane.retries:
            return lane.retries.pop(0)
        batch = self._accumulator.take(partition)
        if batch is not None:
            batch.position = lane.next_position
            lane.next_position += len(batch.records)
        return batch

    def _request(self, batches: list[Batch]) -> ProduceRequest:
        topics: dict[str, ProduceRequest.Topic] = {}
        for batch in batches:
            if batch.encoded is None:
                batch.encoded = self._encode(batch)
            name, index = batch.partition
            topic = topics.setdefault(name, ProduceRequest.Topic(name=name, partition_data=[]))
            topic.partition_data.append(ProduceRequest.Partition(index=index, records=batch.encoded))
        return ProduceRequest(
            transactional_id=self._settings.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=list(topics.values()),
        )

    # --- results ---

    def _settle(self, batch: Batch, row: ProduceResponse.Partition, now_ms: int) -> None:
        code = row.error_code
        if code == ErrorCode.NONE:
            self._done(batch, row.base_offset)
        elif code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # An earlier attempt wrote it, so long ago that the broker no longer knows the offset.
            self._done(batch, -1)
        elif code == ErrorCode.MESSAGE_TOO_LARGE and len(batch.records) > 1:
            self._split(batch, now_ms)
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.position > self._lanes[batch.partition].head():
            # An earlier batch failed; send this one again after it.
            self._retry(batch, BrokerError(code, str(batch.partition)), now_ms)
        else:
            error = refusal(batch, row, self._settings.record_noun)
            # A node may learn about a new topic a little later than the client.
            is_new = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and now_ms - batch.created_ms < NEW_TOPIC_MS
            if error.retriable or is_new:
                # While the transaction before ends, another leader would answer the same.
                if code != ErrorCode.CONCURRENT_TRANSACTIONS:
                    self.stale.add(batch.partition)
                self._retry(batch, error, now_ms)
            else:
                self._fail(batch, error)

    def _done(self, batch: Batch, base_offset: int) -> None:
        self._lanes[batch.partition].has_sequence = True
        self._remove(batch)
        self._accumulator.release(batch)
        self.delivered.append(Delivery(batch, base_offset))

    def _retry(self, batch: Batch, error: KgctlError, now_ms: int) -> None:
        batch.last_error = error
        if isinstance(error, Unreachable):
            self.stale.add(batch.partition)
        self._queue_again(batch, now_ms + self._settings.retry_backoff_ms)

    def _queue_again(self, batch: Batch, at_ms: int) -> None:
        lane = self._lanes[batch.partition]
        lane.settling = True
        lane.retries.append(batch)
        lane.retries.sort(key=lambda waiting: waiting.position)
        lane.retry_at_ms = max(lane.retry_at_ms, at_ms)
        self._remove(batch)

    def _split(self, batch: Batch, now_ms: int) -> None:
        """Replace a batch that is too large for the topic by two; together they have the same sequences."""
        lane = self._lanes[batch.partition]
        half = len(batch.records) // 2
        self._remove(batch)
        self._accumulator.release(batch)
        for start, records in ((0, batch.records[:half]), (half, batch.records[half:])):
            size = BATCH_OVERHEAD_BYTES + sum(record.size_bytes() for record in records)
            part = Batch(batch.partition, batch.created_ms, records, size, batch.position + start)
            self._accumulator.reclaim(part)
            lane.retries.append(part)
        lane.retries.sort(key=lambda waiting: waiting.position)
        lane.retry_at_ms = now_ms
        lane.settling = bool(lane.in_flight)

    def _fail(self, batch: Batch, error: KgctlError) -> None:
        self._remove(batch)
        self._accumulator.release(batch)
        self.failure = self.failure or error

    def _remove(self, batch: Batch) -> None:
        lane = self._lanes[batch.partition]
        lane.in_flight.remove(batch)
        lane.settling = lane.settling and bool(lane.in_flight)

    def _expire(self, now_ms: int) -> None:
        limit = now_ms - self._settings.delivery_timeout_ms
        for lane in self._lanes.values():
            if lane.retries and lane.retries[0].created_ms <= limit:
                self.failure = self.failure or expiry(lane.retries[0], self._settings.record_noun)
        oldest = self._accumulator.oldest()
        if oldest is not None and oldest.created_ms <= limit:
            self.failure = self.failure or expiry(oldest, self._settings.record_noun)


class NotAnswered(KgctlError):
    """The broker answered without this partition."""

    retriable = True

    def __init__(self, batch: Batch) -> None:
        super().__init__(f"{batch.partition}: the broker left the partition out of its answer")


def refusal(batch: Batch, row: ProduceResponse.Partition, noun: str) -> BrokerError:
    """The error of a partition, with the records that it is about."""
    where = batch.describe(noun)
    message = row.error_message
    for record in row.record_errors:
        if 0 <= record.batch_index < len(batch.records):
            where = f"{noun} {batch.records[record.batch_index].number}"
            message = record.batch_index_error_message or message
            break
    if row.error_code == ErrorCode.INVALID_RECORD and any(record.key is None for record in batch.records):
        reason = (message or ErrorCode.INVALID_RECORD.meaning).rstrip(".")
        message = f"{reason}; a topic with cleanup.policy=compact takes only records with a key"
    asked = Asked(ProduceRequest, topic=batch.partition.topic)
    return BrokerError(row.error_code, f"{where} to {batch.partition}", message, asked=asked)


def expiry(batch: Batch, noun: str) -> KgctlError:
    reason = f": {batch.last_error}" if batch.last_error else ""
    unsure = "; it may have been written nevertheless" if batch.attempts else ""
    kind = Unreachable if isinstance(batch.last_error, Unreachable) else TimedOut
    return kind(f"{batch.describe(noun)} to {batch.partition}: not acknowledged in time{reason}{unsure}")
