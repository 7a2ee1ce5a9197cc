"""Decides which batches go to which node, and what an answer means: sequences, retries, order. No I/O, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from kgctl.client.net.cluster import Node
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable
from kgctl.client.producer.accumulator import RecordAccumulator
from kgctl.client.producer.records import BATCH_OVERHEAD_BYTES, Batch
from kgctl.model.topic_partition import TopicPartition

ALL = -1
NEW_TOPIC_MS = 5000


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """Kafka's producer options: acks, request.timeout.ms, max.in.flight.requests.per.connection, max.request.size, ..."""

    acks: int = ALL
    idempotent: bool = True
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    max_in_flight: int = 5
    max_request_bytes: int = 1_048_576
    retry_backoff_ms: int = 100


@dataclass(slots=True, eq=False)
class Sending:
    """One Produce request to one node and the batches in it, at most one per partition."""

    node: Node
    request: ProduceRequest
    batches: list[Batch]


@dataclass(frozen=True, slots=True)
class Delivery:
    """An acknowledged batch; the offset is -1 where the broker does not tell it (acks=0, or a duplicate that it forgot)."""

    batch: Batch
    base_offset: int


@dataclass(slots=True)
class _Lane:
    """What is under way for one partition.

    After a failure nothing is sent until all that is in flight has come back: then the failed batches go again in their
    old order, before any new one. So a retry neither reorders nor, with sequences, duplicates.
    """

    next_position: int = 0
    in_flight: list[Batch] = field(default_factory=list)
    retries: list[Batch] = field(default_factory=list)
    retry_at_ms: int = 0
    settling: bool = False
    # Whether the broker knows our sequences by now. A producer that it does not know may begin with any of them: until
    # then a batch could overtake one that fails, which could not be written any more.
    begun: bool = False
    node: Node | None = None

    def head(self) -> int:
        return min(batch.position for batch in (*self.in_flight, *self.retries))


class Sender:
    """`encode` makes the bytes of a batch; it is called once per batch, when its sequence is fixed."""

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
        """Everything taken from the accumulator has been acknowledged or given up."""
        return not self.in_flight and not any(lane.retries for lane in self._lanes.values())

    def next_sends(self, leaders: Mapping[TopicPartition, Node], now_ms: int, *, flush: bool = False) -> list[Sending]:
        """The requests to send now. After a failure there are none: what is in flight is still waited for."""
        self._expire(now_ms)
        if self.failure:
            return []
        ready = [partition for partition, lane in self._lanes.items() if lane.retries]
        ready += [partition for partition in self._accumulator.ready(now_ms, flush=flush) if partition not in ready]
        sends: list[Sending] = []
        while taken := self._take_round(ready, leaders, now_ms):
            for node, batches in taken.items():
                self._per_node[node] = self._per_node.get(node, 0) + 1
                sends.append(Sending(node, self._request(batches), batches))
            still = set(self._accumulator.ready(now_ms, flush=flush))
            ready = [partition for partition in ready if partition in still or self._lanes[partition].retries]
        return sends

    def wake_at_ms(self) -> int | None:
        """When `next_sends` may have something new without an answer having come."""
        times = [lane.retry_at_ms for lane in self._lanes.values() if lane.retries and not lane.settling]
        linger = self._accumulator.wake_at_ms()
        return min((*times, linger) if linger is not None else times, default=None)

    def may_still_go(self, sending: Sending) -> bool:
        """Whether nothing has failed since it was made that it would overtake; if not, `hold_back` takes it again."""
        return not any(self._lanes[batch.partition].settling for batch in sending.batches)

    def hold_back(self, sending: Sending, now_ms: int) -> None:
        """It was not sent: its batches go again, behind those that failed."""
        self._per_node[sending.node] -= 1
        for batch in sending.batches:
            batch.attempts -= 1
            self._queue_again(batch, now_ms)

    def on_response(self, sending: Sending, response: ProduceResponse, now_ms: int) -> None:
        """The broker answered; each partition has its own verdict."""
        self._per_node[sending.node] -= 1
        rows = {(topic.name, row.index): row for topic in response.responses for row in topic.partition_responses}
        for batch in sending.batches:
            row = rows.get(batch.partition)
            if row is None:
                self._retry(batch, NotAnswered(batch), now_ms)
            else:
                self._judge(batch, row, now_ms)

    def on_sent_without_answer(self, sending: Sending) -> None:
        """acks=0: the broker will not answer."""
        self._per_node[sending.node] -= 1
        for batch in sending.batches:
            self._done(batch, -1)

    def on_failure(self, sending: Sending, error: KgctlError, now_ms: int) -> None:
        """No answer came: the batches may have been written or not."""
        self._per_node[sending.node] -= 1
        for batch in sending.batches:
            if error.retriable or isinstance(error, TimedOut):
                self._retry(batch, error, now_ms)
            else:
                self._give_up(batch, error)

    # --- choosing ---

    def _take_round(
        self, ready: list[TopicPartition], leaders: Mapping[TopicPartition, Node], now_ms: int
    ) -> dict[Node, list[Batch]]:
        """At most one batch of each partition, one request for each node."""
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
                or not self._may_send(lane, node, now_ms)
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

    def _may_send(self, lane: _Lane, node: Node, now_ms: int) -> bool:
        if lane.settling or (lane.retries and now_ms < lane.retry_at_ms):
            return False
        if not lane.in_flight:
            return True
        # Without sequences the broker cannot tell a batch that overtook another: one at a time.
        return (
            self._settings.idempotent
            and lane.begun
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
            acks=self._settings.acks, timeout_ms=self._settings.request_timeout_ms, topic_data=list(topics.values())
        )

    # --- judging ---

    def _judge(self, batch: Batch, row: ProduceResponse.Partition, now_ms: int) -> None:
        code = row.error_code
        if code == ErrorCode.NONE:
            self._done(batch, row.base_offset)
        elif code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # Written by an earlier attempt, so long ago that the broker has forgotten where.
            self._done(batch, -1)
        elif code == ErrorCode.MESSAGE_TOO_LARGE and len(batch.records) > 1:
            self._split(batch, now_ms)
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.position > self._lanes[batch.partition].head():
            # One before it failed; it goes again behind that one.
            self._retry(batch, BrokerError(code, str(batch.partition)), now_ms)
        else:
            error = refusal(batch, row)
            # A node may learn of a new topic a little later than we did.
            young = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and now_ms - batch.created_ms < NEW_TOPIC_MS
            if error.retriable or young:
                self.stale.add(batch.partition)
                self._retry(batch, error, now_ms)
            else:
                self._give_up(batch, error)

    def _done(self, batch: Batch, base_offset: int) -> None:
        self._lanes[batch.partition].begun = True
        self._leave(batch)
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
        self._leave(batch)

    def _split(self, batch: Batch, now_ms: int) -> None:
        """Two batches in place of one that is too large for the topic; their sequences add up to the same."""
        lane = self._lanes[batch.partition]
        half = len(batch.records) // 2
        self._leave(batch)
        self._accumulator.release(batch)
        for start, records in ((0, batch.records[:half]), (half, batch.records[half:])):
            size = BATCH_OVERHEAD_BYTES + sum(record.size_bytes() for record in records)
            part = Batch(batch.partition, batch.created_ms, records, size, batch.position + start)
            self._accumulator.reclaim(part)
            lane.retries.append(part)
        lane.retries.sort(key=lambda waiting: waiting.position)
        lane.retry_at_ms = now_ms
        lane.settling = bool(lane.in_flight)

    def _give_up(self, batch: Batch, error: KgctlError) -> None:
        self._leave(batch)
        self._accumulator.release(batch)
        self.failure = self.failure or error

    def _leave(self, batch: Batch) -> None:
        lane = self._lanes[batch.partition]
        lane.in_flight.remove(batch)
        lane.settling = lane.settling and bool(lane.in_flight)

    def _expire(self, now_ms: int) -> None:
        limit = now_ms - self._settings.delivery_timeout_ms
        for lane in self._lanes.values():
            if lane.retries and lane.retries[0].created_ms <= limit:
                self.failure = self.failure or expiry(lane.retries[0])
        oldest = self._accumulator.oldest()
        if oldest is not None and oldest.created_ms <= limit:
            self.failure = self.failure or expiry(oldest)


class NotAnswered(KgctlError):
    """The broker answered, but not for this partition."""

    retriable = True

    def __init__(self, batch: Batch) -> None:
        super().__init__(f"{batch.partition}: the broker left the partition out of its answer")


def refusal(batch: Batch, row: ProduceResponse.Partition) -> BrokerError:
    """What a partition's error says, with the input lines that it is about."""
    where = batch.describe()
    message = row.error_message
    for record in row.record_errors:
        if 0 <= record.batch_index < len(batch.records):
            where = f"line {batch.records[record.batch_index].line}"
            message = record.batch_index_error_message or message
            break
    if row.error_code == ErrorCode.INVALID_RECORD and any(record.key is None for record in batch.records):
        reason = (message or ErrorCode.INVALID_RECORD.meaning).rstrip(".")
        message = f"{reason}; a topic with cleanup.policy=compact takes only records with a key"
    return BrokerError(row.error_code, f"{where} to {batch.partition}", message)


def expiry(batch: Batch) -> KgctlError:
    reason = f": {batch.last_error}" if batch.last_error else ""
    unsure = "; it may have been written all the same" if batch.attempts else ""
    kind = Unreachable if isinstance(batch.last_error, Unreachable) else TimedOut
    return kind(f"{batch.describe()} to {batch.partition}: not acknowledged in time{reason}{unsure}")
