"""Sequences of an idempotent producer: which batch may be sent, and what an answer means for those after it (KIP-98, KIP-360)."""

from __future__ import annotations

from broker.light_dataclasses import dataclass, field
from broker.protocol.errors import ErrorCode
from kgctl.client.net.errors import BrokerError, KgctlError, Unsupported
from kgctl.client.producer.core.batch import NO_IDENTITY, Batch, ProducerIdentity
from kgctl.model.topic_partition import TopicPartition

_MAX_EPOCH = 32_767
# What ends the producer, whichever broker says it.
FATAL = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.UNSUPPORTED_VERSION,
)
# The topic may have been deleted and created again: then the log of the new one has no sequences.
_MAY_BE_ANOTHER_TOPIC = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)


@dataclass(slots=True)
class Lane:
    """The sequences of one partition. Positions count records of one epoch and do not wrap around, as sequences do.

    `pending` are the batches with a sequence that are not acknowledged, in order. `acked_end` is where the acknowledged
    ones end.
    """

    identity: ProducerIdentity = NO_IDENTITY
    next_position: int = 0
    acked_end: int = 0
    acked_offset: int = -1
    pending: list[Batch] = field(default_factory=list)
    node_id: int = -1
    # The producer id of which the broker has stored a sequence. It accepts any first sequence of an unknown producer: until
    # then a batch could overtake one that fails, which could no longer be written.
    known_id: int = -1

    def restart(self, identity: ProducerIdentity) -> None:
        """Number the pending batches from 0 in another epoch."""
        position = 0
        for batch in self.pending:
            batch.assign_again(identity, position)
            position += batch.count
        self.identity, self.next_position, self.acked_end = identity, position, 0

    def close_gap(self, failed: Batch) -> None:
        """The broker has refused a batch for good: the later ones take its place."""
        self.next_position -= failed.count
        for batch in self.pending:
            if batch.position > failed.position:
                batch.assign_again(batch.identity, batch.position - failed.count)

    def add(self, batch: Batch) -> None:
        """Track a half of a batch that was split."""
        self.pending.append(batch)
        self.pending.sort(key=lambda one: one.position)


class Idempotence:
    """`identity` is what the broker gave; without one, nothing is sent. A transactional producer refines this."""

    is_transactional = False

    def __init__(self) -> None:
        self.identity = NO_IDENTITY
        self.fatal: KgctlError | None = None
        self.lanes: dict[TopicPartition, Lane] = {}
        # Partitions of which a batch expired after it was sent, with the position after it. Nothing new is sent there
        # until the answers of the others show whether it was written.
        self.unresolved: dict[TopicPartition, int] = {}
        self.needs_bump = False
        self._rewritten: set[TopicPartition] = set()

    @property
    def has_identity(self) -> bool:
        return self.identity.producer_id >= 0

    @property
    def is_completing(self) -> bool:
        """Whether a transaction ends: then batches do not linger."""
        return False

    def lane(self, partition: TopicPartition) -> Lane:
        found = self.lanes.get(partition)
        if found is None:
            found = self.lanes[partition] = Lane()
        return found

    # --- sending ---

    def is_allowed(self, partition: TopicPartition) -> bool:
        """Whether the partition may be sent to at all."""
        return self.fatal is None

    def may_drain(self, batch: Batch, node_id: int) -> bool:
        """Whether a batch may be sent now without getting ahead of another one."""
        partition = batch.partition
        if not self.has_identity or not self.is_allowed(partition):
            return False
        lane = self.lane(partition)
        pending = lane.pending
        if batch.has_sequence:
            # A retry: only once all batches before it are done.
            return not pending or pending[0] is batch
        if partition in self.unresolved:
            return False
        if pending:
            is_known = lane.known_id == self.identity.producer_id
            return is_known and lane.identity == self.identity and lane.node_id == node_id
        lane.node_id = node_id
        return True

    def assign(self, batch: Batch) -> None:
        """Give a batch the next sequence of its partition."""
        lane = self.lane(batch.partition)
        if lane.identity != self.identity and not lane.pending:
            lane.restart(self.identity)
        batch.assign(self.identity, lane.next_position, is_transactional=self.is_transactional)
        lane.next_position += batch.count
        lane.pending.append(batch)

    # --- answers ---

    def completed(self, batch: Batch, base_offset: int) -> None:
        """The broker has the batch."""
        lane = self.lane(batch.partition)
        if batch.identity == lane.identity:
            lane.acked_end = max(lane.acked_end, batch.end_position)
            lane.known_id = batch.identity.producer_id
            if base_offset >= 0:
                lane.acked_offset = max(lane.acked_offset, base_offset + batch.count - 1)
        self.forget(batch)

    def forget(self, batch: Batch) -> None:
        """Track a batch no longer: it is done, or was split."""
        lane = self.lanes.get(batch.partition)
        if lane is not None and batch in lane.pending:
            lane.pending.remove(batch)

    def was_split(self, batch: Batch, halves: tuple[Batch, Batch]) -> None:
        if batch.has_sequence:
            self.forget(batch)
            for half in halves:
                self.lane(batch.partition).add(half)

    def failed(self, batch: Batch, error: KgctlError, *, is_refused: bool) -> None:
        """A batch will not be sent again. `is_refused`: the broker has certainly not written it."""
        self.note_error(error)
        self.forget(batch)
        if self.fatal is not None or not batch.has_sequence:
            return
        code = code_of(error)
        if code == ErrorCode.UNKNOWN_PRODUCER_ID:
            # The broker knows no sequence: it accepts 0.
            self.lanes.pop(batch.partition, None)
            self.unresolved.pop(batch.partition, None)
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or is_refused:
            self._close_gap(batch, code)

    def _close_gap(self, batch: Batch, code: int | None) -> None:
        self.request_bump(batch.partition)

    def note_error(self, error: KgctlError) -> None:
        """The error of a batch, as what it means for the producer."""
        if code_of(error) in FATAL or isinstance(error, Unsupported):
            self.fatal = self.fatal or error

    def expired_in_retry(self, batch: Batch) -> None:
        """A batch that was sent has expired: whether the broker has it is not known."""
        if batch.identity == self.lane(batch.partition).identity:
            before = self.unresolved.get(batch.partition, 0)
            self.unresolved[batch.partition] = max(before, batch.end_position)

    def may_retry(self, batch: Batch, error: BrokerError, log_start_offset: int) -> bool:
        """Whether to send a batch again after this answer. May ask for a new epoch."""
        lane = self.lane(batch.partition)
        if error.code == ErrorCode.UNKNOWN_PRODUCER_ID:
            # Retention has removed all that this producer wrote, or the broker does not say whether it has.
            if log_start_offset == -1 or batch.has_new_sequence:
                return True
            if lane.acked_offset < log_start_offset:
                self._start_over(batch.partition)
                return True
            return self._retry_unknown(batch.partition)
        if error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            is_next = batch.position == lane.acked_end
            if batch.partition not in self.unresolved and (batch.has_new_sequence or not is_next):
                # An earlier batch failed; this one follows it.
                return True
            return self._retry_out_of_order(batch)
        if error.code in _MAY_BE_ANOTHER_TOPIC:
            lane.known_id = -1
        return error.retriable

    def _start_over(self, partition: TopicPartition) -> None:
        self.request_bump(partition)

    def _retry_unknown(self, partition: TopicPartition) -> bool:
        self.request_bump(partition)
        return True

    def _retry_out_of_order(self, batch: Batch) -> bool:
        expected = self.unresolved.get(batch.partition)
        if expected is None or expected == batch.position:
            # There is a gap in the log.
            self.request_bump(batch.partition)
        return True

    # --- epochs ---

    def request_bump(self, partition: TopicPartition) -> None:
        """Begin a new epoch before anything else is sent; the pending batches of the partition get sequences of it."""
        self.needs_bump = True
        self._rewritten.add(partition)

    def bump(self) -> None:
        """Begin a new epoch if one is needed: an idempotent producer may do so by itself (KIP-360)."""
        if not self.needs_bump:
            return
        self.needs_bump = False
        producer_id, epoch = self.identity
        if epoch >= _MAX_EPOCH:
            self.identity = NO_IDENTITY
        elif producer_id >= 0:
            self.identity = ProducerIdentity(producer_id, epoch + 1)
        for partition in self._rewritten:
            self.lane(partition).restart(self.identity)
            self.unresolved.pop(partition, None)
        self._rewritten.clear()

    def resolve(self) -> None:
        """Once nothing is pending in a partition with an unknown outcome, decide what it was."""
        for partition in list(self.unresolved):
            lane = self.lane(partition)
            if lane.pending:
                continue
            if lane.next_position != lane.acked_end:
                self._lost_sequences(partition)
            self.unresolved.pop(partition, None)

    def _lost_sequences(self, partition: TopicPartition) -> None:
        self.request_bump(partition)

    def restart_all(self) -> None:
        """All sequences begin at 0: the broker has given a new identity."""
        self.lanes = {
            partition: Lane(known_id=lane.known_id) for partition, lane in self.lanes.items() if not lane.pending
        }
        self.unresolved.clear()
        self._rewritten.clear()


def code_of(error: KgctlError | None) -> int | None:
    return error.code if isinstance(error, BrokerError) else None
