"""Sends batches that are due, and decides what answers mean: done, again, or failed. Reads no clock and does no I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from broker.light_dataclasses import dataclass
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable
from kgctl.client.network.metadata import Metadata
from kgctl.client.network.nodes import Node
from kgctl.client.network.outgoing import Outgoing
from kgctl.client.producer.core.accumulator import Accumulator
from kgctl.client.producer.core.batch import Batch
from kgctl.client.producer.core.coordination import Network
from kgctl.client.producer.core.identity import IdempotentProducer
from kgctl.client.producer.core.measures import Measures
from kgctl.client.producer.core.produced_topics import ProducedTopics
from kgctl.client.producer.core.states import State
from kgctl.client.producer.core.transactions import Transactions
from kgctl.model.topic_partition import TopicPartition

ALL = -1
# Version 12 adds partitions to transactions.
_MAX_EXPLICIT_VERSION = 11
# The metadata of brokers may show a new leader, or the new topic, soon.
_STALE_METADATA = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """Kafka's options of the same names. `record_noun` is what errors call a record: a caller that reads lines says `line`.

    `keeps_order`: at most one batch of a partition is in flight, so that no retry gets ahead of it.
    """

    acks: int = ALL
    retries: int = 0x7FFFFFFF
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    keeps_order: bool = False
    record_noun: str = "record"


class Sender:
    """A participant of the engine. `settled` gets each batch whose outcome is known, in order of the answers."""

    def __init__(
        self,
        network: Network,
        metadata: Metadata,
        accumulator: Accumulator,
        settings: SenderSettings,
        producer: IdempotentProducer | None,
        settled: Callable[[Batch], None],
    ) -> None:
        self._network, self._metadata, self._accumulator, self._settings = network, metadata, accumulator, settings
        self._producer = producer
        self._transactions = producer if isinstance(producer, Transactions) else None
        self._settled = settled
        self.measures = Measures()
        # Sent and not answered, in the order in which they were sent.
        self._in_flight: dict[TopicPartition, deque[Batch]] = {}
        self._wake_at_ms: int | None = None

    @property
    def in_flight(self) -> int:
        """Batches without an answer."""
        return sum(len(batches) for batches in self._in_flight.values())

    def wake_at_ms(self) -> int | None:
        return self._wake_at_ms

    def advance(self, now_ms: int) -> None:
        """Send what is due, and fail what has expired."""
        self._wake_at_ms = None
        accumulator, producer = self._accumulator, self._producer
        if producer is not None:
            self._drop(producer)
            producer.advance(
                now_ms,
                has_incomplete=bool(accumulator.incomplete),
                has_undrained=accumulator.has_undrained,
            )
            # What this found out may leave batches without a future.
            self._drop(producer)
            self._wake(producer.wake_at_ms(now_ms))
        expires_ms = accumulator.next_expiry_ms()
        if expires_ms is not None and now_ms >= expires_ms:
            self._expire(now_ms)
            expires_ms = accumulator.next_expiry_ms()
        self._wake(expires_ms)
        if accumulator.has_undrained:
            self._send_due(now_ms)

    def _wake(self, at_ms: int | None) -> None:
        if at_ms is not None and (self._wake_at_ms is None or at_ms < self._wake_at_ms):
            self._wake_at_ms = at_ms

    # --- sending ---

    def _send_due(self, now_ms: int) -> None:
        accumulator, network = self._accumulator, self._network
        ready = accumulator.ready(now_ms)
        if ready.leaderless:
            # They may have been forgotten after a long time without use.
            for topic in ready.leaderless:
                self._metadata.use(topic, now_ms)
            self._metadata.request_update()
        self._wake(ready.check_at_ms)
        able: list[int] = []
        for node_id in ready.nodes:
            can_drain = network.is_ready(node_id, now_ms)
            accumulator.note_node(node_id, now_ms, can_drain=can_drain)
            if can_drain:
                able.append(node_id)
            else:
                self._wake(network.ready_at_ms(node_id, now_ms))
        for node_id, batches in accumulator.drain(able, now_ms).items():
            self._send(node_id, batches, now_ms)

    def _send(self, node_id: int, batches: list[Batch], now_ms: int) -> None:
        for batch in batches:
            batch.attempts += 1
            self._in_flight.setdefault(batch.partition, deque()).append(batch)
            if self._settings.keeps_order:
                self._accumulator.mute(batch.partition)
        self.measures.sent(batches, now_ms)

        topics = ProducedTopics(batches, self._metadata.topic_id)

        def done(answer: ProduceResponse | KgctlError | None, now: int) -> None:
            found = topics.rows(answer, outgoing.version) if isinstance(answer, ProduceResponse) else {}
            self._answered(batches, answer, found, now)
            self.measures.answered(now - now_ms)

        settings, transactions = self._settings, self._transactions
        is_explicit = transactions is not None and not transactions.is_implicit
        request = ProduceRequest(
            transactional_id=None if transactions is None else transactions.transactional_id,
            acks=settings.acks,
            timeout_ms=settings.request_timeout_ms,
            topic_data=topics.data,
        )
        outgoing: Outgoing[ProduceResponse] = Outgoing(
            request,
            ProduceResponse if settings.acks else None,
            done,
            settings.request_timeout_ms,
            max_version=_MAX_EXPLICIT_VERSION if is_explicit else topics.max_version,
        )
        self._network.send(node_id, outgoing, now_ms)

    # --- answers ---

    def _answered(
        self,
        batches: list[Batch],
        answer: ProduceResponse | KgctlError | None,
        rows: Mapping[TopicPartition, ProduceResponse.Partition],
        now_ms: int,
    ) -> None:
        if isinstance(answer, KgctlError):
            for batch in batches:
                self._unanswered(batch, answer, now_ms)
        elif answer is None:
            for batch in batches:
                if self._land(batch):
                    self._complete(batch, -1, -1)
        else:
            leaders: dict[TopicPartition, tuple[int, int]] = {}
            for batch in batches:
                row = rows.get(batch.partition)
                if row is None:
                    self._unanswered(batch, _left_out(batch), now_ms)
                    continue
                leader = row.current_leader
                if row.error_code and leader is not None and leader.leader_id >= 0 and leader.leader_epoch >= 0:
                    leaders[batch.partition] = (leader.leader_id, leader.leader_epoch)
                self._settle(batch, row, now_ms)
            if leaders:
                nodes = [Node(row.node_id, row.host, row.port, row.rack) for row in answer.node_endpoints]
                self._metadata.note_leaders(leaders, nodes)

    def _unanswered(self, batch: Batch, error: KgctlError, now_ms: int) -> None:
        if not self._land(batch):
            return
        if (error.retriable or isinstance(error, TimedOut)) and self._may_try_again(batch, now_ms):
            self._metadata.request_update()
            self._retry(batch, error, now_ms)
        else:
            self._fail(batch, error, is_refused=False)

    def _settle(self, batch: Batch, row: ProduceResponse.Partition, now_ms: int) -> None:
        code = row.error_code
        if not self._land(batch):
            return
        if not code or code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # A duplicate that the broker no longer remembers: an earlier attempt wrote it, at an offset it does not name.
            self._complete(batch, -1 if code else row.base_offset, -1 if code else row.log_append_time_ms)
            return
        if code == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._split(batch)
            return
        error = refusal(batch, row, self._settings.record_noun)
        if self._may_try_again(batch, now_ms) and self._is_retriable(batch, error, row):
            self._retry(batch, error, now_ms)
        else:
            self._refuse(batch, row, error)
        if code in _STALE_METADATA:
            self._metadata.request_update()

    def _refuse(self, batch: Batch, row: ProduceResponse.Partition, error: BrokerError) -> None:
        # After the last retry it is not known whether an earlier attempt was written.
        self._fail(batch, error, is_refused=batch.attempts <= self._settings.retries)
        if row.record_errors:
            batch.record_errors = {one.batch_index: error for one in row.record_errors}
            batch.error = KgctlError(
                f"{batch.partition}: not written, as the broker refused another record of the batch"
            )
            batch.error.name = error.name

    def _land(self, batch: Batch) -> bool:
        """The batch is no longer in flight. False if it expired before."""
        waiting = self._in_flight.get(batch.partition)
        if waiting is None or batch not in waiting:
            return False
        waiting.remove(batch)
        if not waiting:
            del self._in_flight[batch.partition]
        if self._settings.keeps_order:
            self._accumulator.unmute(batch.partition)
        return True

    def _may_try_again(self, batch: Batch, now_ms: int) -> bool:
        is_late = now_ms - batch.created_ms >= self._settings.delivery_timeout_ms
        return batch.attempts <= self._settings.retries and not is_late

    def _is_retriable(self, batch: Batch, error: BrokerError, row: ProduceResponse.Partition) -> bool:
        if self._producer is None:
            return error.retriable
        return self._producer.may_retry(batch, error, row.log_start_offset)

    def _retry(self, batch: Batch, error: KgctlError, now_ms: int) -> None:
        batch.last_error = error
        self.measures.retried(batch)
        self._accumulator.requeue(batch, now_ms)

    def _split(self, batch: Batch) -> None:
        self.measures.splits += 1
        halves = self._accumulator.split(batch)
        if self._producer is not None:
            self._producer.was_split(batch, halves)

    def _complete(self, batch: Batch, base_offset: int, log_append_ms: int) -> None:
        if self._producer is not None:
            self._producer.completed(batch, base_offset)
        batch.base_offset, batch.log_append_ms = base_offset, log_append_ms
        self._accumulator.release(batch)
        self._settled(batch)

    def _fail(self, batch: Batch, error: KgctlError, *, is_refused: bool) -> None:
        batch.error = error
        self.measures.failed(batch)
        if self._producer is not None:
            self._producer.failed(batch, error, is_refused=is_refused)
        self._accumulator.release(batch)
        self._settled(batch)

    # --- what is given up ---

    def _expire(self, now_ms: int) -> None:
        limit = now_ms - self._settings.delivery_timeout_ms
        for partition, batches in list(self._in_flight.items()):
            # A retry is behind batches that were created later.
            for batch in [batch for batch in batches if batch.created_ms <= limit]:
                # Its answer, if there is one, comes too late.
                batches.remove(batch)
                self._give_up(batch)
            if not batches:
                del self._in_flight[partition]
                if self._settings.keeps_order:
                    self._accumulator.unmute(partition)
        for batch in self._accumulator.expired(now_ms):
            self._give_up(batch)

    def _give_up(self, batch: Batch) -> None:
        if self._producer is not None and batch.has_sequence:
            self._producer.expired_in_retry(batch)
        self._fail(batch, expiry(batch, self._settings.record_noun), is_refused=False)

    def _drop(self, producer: IdempotentProducer) -> None:
        """Fail what will not be sent any more."""
        accumulator = self._accumulator
        rejection = producer.take_rejection()
        if not accumulator.incomplete:
            return
        if producer.fatal is not None:
            self.abort(producer.fatal)
        elif rejection is not None:
            self.abort(rejection)
        elif self._transactions is not None and (reason := self._transactions.drops_unsent) is not None:
            self.drop_unsent(reason)

    def drop_unsent(self, reason: KgctlError) -> None:
        """Fail the batches that were never sent."""
        unsent = [batch for batch in self._accumulator.undrained() if not batch.attempts and not batch.has_sequence]
        self._accumulator.remove(unsent)
        for batch in unsent:
            self._drop_one(batch, reason)

    def abort(self, reason: KgctlError) -> None:
        """Fail all batches, also those in flight: answers to them are ignored."""
        self._in_flight.clear()
        for batch in list(self._accumulator.incomplete):
            self._accumulator.remove([batch])
            self._accumulator.unmute(batch.partition)
            if self._producer is not None:
                self._producer.forget(batch)
            self._drop_one(batch, reason)

    def _drop_one(self, batch: Batch, reason: KgctlError) -> None:
        batch.error = reason
        self.measures.failed(batch)
        self._accumulator.release(batch)
        self._settled(batch)

    @property
    def has_work(self) -> bool:
        """Whether a graceful close must wait: batches, or requests of a transaction."""
        if self._accumulator.incomplete:
            return True
        transactions = self._transactions
        return transactions is not None and (len(transactions.queue) > 0 and transactions.is_open)

    def abort_open_transaction(self) -> None:
        """Before a close: a transaction that is open would make readers wait until its timeout."""
        transactions = self._transactions
        if transactions is not None and transactions.state in (State.IN_TRANSACTION, State.MUST_ABORT):
            transactions.begin_abort()


def _left_out(batch: Batch) -> KgctlError:
    error = Unreachable(f"{batch.partition}: the broker left the partition out of its answer")
    error.name = "NO_ANSWER"
    return error


def refusal(batch: Batch, row: ProduceResponse.Partition, noun: str) -> BrokerError:
    """The error of a partition, with the records that it is about."""
    where, message = batch.describe(noun), row.error_message
    for record in row.record_errors:
        if 0 <= record.batch_index < batch.count:
            if batch.tags:
                where = f"{noun} {batch.tags[record.batch_index][0]}"
            message = record.batch_index_error_message or message
            break
    if row.error_code == ErrorCode.INVALID_RECORD and batch.has_keyless_records():
        reason = (message or ErrorCode.INVALID_RECORD.meaning).rstrip(".")
        message = f"{reason}; a topic with cleanup.policy=compact takes only records with a key"
    asked = Asked(ProduceRequest, topic=batch.partition.topic)
    return BrokerError(row.error_code, f"{where} to {batch.partition}", message, asked=asked, by_leader=True)


def expiry(batch: Batch, noun: str) -> KgctlError:
    """Why a batch failed after delivery.timeout.ms."""
    reason = f": {batch.last_error}" if batch.last_error else ""
    unsure = "; it may have been written nevertheless" if batch.attempts else ""
    kind = Unreachable if isinstance(batch.last_error, Unreachable) else TimedOut
    return kind(f"{batch.describe(noun)} to {batch.partition}: not acknowledged in time{reason}{unsure}")
