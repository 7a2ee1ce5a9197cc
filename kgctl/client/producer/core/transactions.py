"""The transactions of one transactional id (KIP-98), in both protocols.

In the older one the producer adds each partition and group with a request, and its epoch stays the same until it asks for
another one (KIP-360). With transaction.version 2 (KIP-890) Produce and TxnOffsetCommit add what they name, and each EndTxn
answers the next epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from kgctl.client.net.errors import KgctlError, Unsupported
from kgctl.client.network.coordinator import Coordinator
from kgctl.client.producer.core.batch import Batch, ProducerIdentity
from kgctl.client.producer.core.coordination import Network, Outcome, Priority, Step
from kgctl.client.producer.core.errors import (
    ProducerClosed,
    ProducerFenced,
    TransactionAbortable,
    TransactionAborted,
    TransactionFailed,
    WrongState,
)
from kgctl.client.producer.core.idempotence import FATAL, code_of
from kgctl.client.producer.core.identity import IdempotentProducer
from kgctl.client.producer.core.states import BEFORE, NEXT, State, TransactionSettings
from kgctl.client.producer.core.steps import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    End,
    InitProducerId,
)
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
    from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata

GROUP, TRANSACTION = 0, 1


# The coordinator has given the transactional id to another producer, or has ended the transaction itself.
_LOST = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)


@dataclass(slots=True)
class _Pending:
    """A call whose outcome its caller has not seen: after a timeout it may only be repeated."""

    operation: str
    outcome: Outcome


class Transactions(IdempotentProducer):
    """`is_implicit` says whether the cluster has transaction.version 2; `find` makes the coordinator of a key."""

    is_transactional = True

    def __init__(
        self,
        settings: TransactionSettings,
        network: Network,
        find: Callable[[int, str], Coordinator],
        has_version_2: Callable[[], bool],
        request_timeout_ms: int,
        backoff_ms: Callable[[int], int],
    ) -> None:
        super().__init__(network, request_timeout_ms, backoff_ms)
        self.transactional_id, self.timeout_ms = settings.transactional_id, settings.timeout_ms
        self._network, self._find, self._has_version_2 = network, find, has_version_2
        self._coordinator = find(TRANSACTION, settings.transactional_id)
        self._group_coordinators: dict[str, Coordinator] = {}
        self.state = State.UNINITIALIZED
        self.is_implicit = False
        # Whether the coordinator may have the transaction.
        self.has_started = False
        self.failure: TransactionFailed | None = None
        self.partitions: set[TopicPartition] = set()
        self._new: set[TopicPartition] = set()
        self._adding: set[TopicPartition] = set()
        self._pending: _Pending | None = None
        self._began_ms = 0
        self._now_ms = 0
        self._can_bump = False

    @property
    def coordinator(self) -> Coordinator:
        return self._coordinator

    def group_coordinator(self, group: str) -> Coordinator:
        found = self._group_coordinators.get(group)
        if found is None:
            found = self._group_coordinators[group] = self._find(GROUP, group)
        return found

    # --- calls ---

    def initialize(self) -> Outcome:
        """Get a producer id. Fences older producers with the transactional id, and waits until their transaction has ended."""

        def start() -> Outcome:
            self._check_failure()
            self._enter(State.INITIALIZING, "init_transactions")
            return self.put(InitProducerId(self))

        return self._call("init_transactions", start)

    def begin(self, now_ms: int) -> None:
        self._check_pending("begin_transaction")
        self._check_failure()
        self._enter(State.IN_TRANSACTION, "begin_transaction")
        self.is_implicit = self._has_version_2()
        self._began_ms = now_ms

    def use(self, partition: TopicPartition) -> None:
        """A record for this partition is part of the transaction."""
        if self._pending is not None:
            self._check_pending("send")
        if self.state is not State.IN_TRANSACTION:
            self._check_failure()
            raise self._wrong_state(f"cannot send to {partition}")
        if partition not in self.partitions and partition not in self._adding:
            (self.partitions if self.is_implicit else self._new).add(partition)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> Outcome:
        """Commit offsets of a group with the transaction."""
        self._check_pending("send_offsets_to_transaction")
        self._check_failure()
        if self.state is not State.IN_TRANSACTION:
            raise self._wrong_state("cannot call send_offsets_to_transaction")
        if self.is_implicit:
            return self.put(CommitOffsets(self, offsets, group))
        return self.put(AddOffsets(self, offsets, group))

    def begin_commit(self) -> Outcome:
        def start() -> Outcome:
            self._check_failure()
            self._enter(State.COMMITTING, "commit_transaction")
            return self._end(commit=True)

        return self._call("commit_transaction", start)

    def begin_abort(self) -> Outcome:
        def start() -> Outcome:
            if self.state is not State.MUST_ABORT:
                self._check_failure()
            self._enter(State.ABORTING, "abort_transaction")
            self._new.clear()
            return self._end(commit=False)

        return self._call("abort_transaction", start)

    def _end(self, *, commit: bool) -> Outcome:
        self._add_new()
        cause = self.failure.__cause__ if self.failure is not None else None
        if not (isinstance(cause, KgctlError) and code_of(cause) == ErrorCode.INVALID_PRODUCER_ID_MAPPING):
            outcome = self.put(End(self, commit=commit))
            if not self.needs_bump:
                return outcome
        # The coordinator would refuse the epoch that it has: the answer of this request is what counts.
        return self.put(InitProducerId(self, self.identity))

    def put(self, step: Step) -> Outcome:
        self.queue.put(step)
        return step.outcome

    def _call(self, operation: str, start: Callable[[], Outcome]) -> Outcome:
        pending = self._pending
        if pending is not None and not pending.outcome.is_seen:
            if pending.operation == operation:
                return pending.outcome
            self._check_pending(operation)
        outcome = start()
        self._pending = _Pending(operation, outcome)
        return outcome

    def _check_pending(self, operation: str) -> None:
        pending = self._pending
        if pending is not None:
            if not pending.outcome.is_seen:
                raise WrongState(
                    f"cannot call {operation}: {pending.operation} has timed out before; repeat it until it returns"
                )
            self._pending = None

    def _check_failure(self) -> None:
        if self.state in (State.MUST_ABORT, State.FATAL) and self.failure is not None:
            raise self.failure.with_traceback(None)

    # --- requests ---

    @property
    def is_completing(self) -> bool:
        return self.state in (State.COMMITTING, State.ABORTING)

    @property
    def is_open(self) -> bool:
        return self.state in (State.IN_TRANSACTION, State.COMMITTING, State.ABORTING, State.MUST_ABORT)

    @property
    def drops_unsent(self) -> KgctlError | None:
        """Why batches that were not sent will not be sent; None while they will."""
        if self.state is State.ABORTING:
            return self.failure or TransactionAborted()
        return self.failure if self.state is State.MUST_ABORT else None

    def advance(self, now_ms: int, *, has_incomplete: bool, has_undrained: bool) -> None:
        """Send what is due. A transaction ends once no batch is incomplete."""
        self._now_ms = now_ms
        self.resolve()
        if self.queue.in_flight is not None:
            return
        self._add_new()
        while (step := self.queue.peek()) is not None:
            if step.priority is Priority.END and has_incomplete:
                return
            if self.failure is not None and self.state in (State.MUST_ABORT, State.FATAL):
                self.queue.drop_first().outcome.finish(self.failure)
            elif step.priority is Priority.END and not self.has_started:
                # The coordinator has nothing to end.
                self.queue.drop_first().outcome.finish()
                self._complete()
            else:
                self.queue.send_first(now_ms)
                return

    def _add_new(self) -> None:
        if self._new:
            self._adding |= self._new
            self._new.clear()
            self.put(AddPartitions(self, sorted(self._adding)))

    def added(self, partitions: Iterable[TopicPartition]) -> None:
        """The coordinator has made the partitions part of the transaction."""
        self._adding.difference_update(partitions)
        self.partitions.update(partitions)
        self.has_started = True

    def not_added(self, partitions: Iterable[TopicPartition]) -> None:
        self._adding.difference_update(partitions)

    def initialized(self, identity: ProducerIdentity, *, is_bump: bool) -> None:
        self.identity = identity
        self._reset()
        self._enter(State.READY)
        self._can_bump = self.can_continue
        if is_bump:
            self.restart_all()

    def ended(self, identity: ProducerIdentity | None) -> None:
        """The coordinator has answered EndTxn, with transaction.version 2 with the identity for the next transaction."""
        if identity is not None:
            self.identity = identity
            self.restart_all()
        self._complete()

    def _complete(self) -> None:
        self._enter(State.INITIALIZING if self.needs_bump else State.READY)
        self._reset()

    def _reset(self) -> None:
        self.failure, self.needs_bump, self.has_started = None, False, False
        for partitions in (self.partitions, self._new, self._adding):
            partitions.clear()

    def close(self) -> None:
        """Fail the calls that wait."""
        error = ProducerClosed("the producer was closed before the answer came")
        for step in self.queue.steps():
            step.outcome.finish(error)
        self.queue.clear()
        if self._pending is not None:
            self._pending.outcome.finish(error)

    # --- batches ---

    def is_allowed(self, partition: TopicPartition) -> bool:
        return self.state is not State.FATAL and partition in self.partitions

    def assign(self, batch: Batch) -> None:
        super().assign(batch)
        if self.is_implicit:
            self.has_started = True

    def _close_gap(self, batch: Batch, code: int | None) -> None:
        if code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            lane = self.lane(batch.partition)
            if lane.identity == batch.identity:
                lane.close_gap(batch)

    def _start_over(self, partition: TopicPartition) -> None:
        self.lane(partition).restart(self.identity)

    def _retry_unknown(self, partition: TopicPartition) -> bool:
        return False

    def _retry_out_of_order(self, batch: Batch) -> bool:
        return False

    def _lost_sequences(self, partition: TopicPartition) -> None:
        error = KgctlError(f"{partition}: it is not known whether some records were written")
        if self.can_continue:
            self.needs_bump = self._bumps_itself
            self.fail_abortably(error)
        else:
            self.fail_fatally(error)

    # --- failures ---

    @property
    def can_continue(self) -> bool:
        """Whether the producer can get another epoch after sequences were lost (Kafka 2.5, KIP-360)."""
        node_id = self.coordinator.node_id
        version = None if node_id is None else self._network.version_of(node_id, InitProducerIdRequest, 3)
        if version is not None:
            # Also while the coordinator is looked up again, what it could is what counts.
            self._can_bump = isinstance(version, int)
        return self.is_implicit or self._can_bump

    @property
    def _bumps_itself(self) -> bool:
        return not self.is_implicit and self.can_continue

    def note_error(self, error: KgctlError) -> None:
        if code_of(error) in FATAL or isinstance(error, Unsupported):
            self.fail_fatally(error)
        elif self.state is not State.FATAL:
            if self._bumps_itself and not self.is_completing:
                self.needs_bump = True
            self.fail_abortably(error)

    def fail_fatally(self, error: KgctlError) -> KgctlError:
        if self.state is not State.FATAL:
            kind = ProducerFenced if code_of(error) in _LOST else TransactionFailed
            self.failure = kind(error, self._explained(error))
            self.fatal = self.failure
            self.state = State.FATAL
        assert self.failure is not None
        if self._pending is not None:
            self._pending.outcome.finish(self.failure)
        return self.failure

    def fail_abortably(self, error: KgctlError) -> KgctlError:
        failure = TransactionAbortable(error, self._explained(error))
        if self.state is State.INITIALIZING:
            # The call fails and may be repeated.
            self.state = State.UNINITIALIZED
        elif self.state in (State.IN_TRANSACTION, State.COMMITTING):
            self.failure = failure
            self._enter(State.MUST_ABORT)
        return self.failure or failure

    def fail_abortably_if_possible(self, error: KgctlError) -> KgctlError:
        if not self.can_continue:
            return self.fail_fatally(error)
        self.needs_bump = self._bumps_itself
        return self.fail_abortably(error)

    def _enter(self, state: State, operation: str = "continue") -> None:
        if self.state not in BEFORE[state]:
            raise self._wrong_state(f"cannot call {operation}")
        self.state = state

    def _wrong_state(self, what: str) -> WrongState:
        producer = f"the producer with transactional id {self.transactional_id!r}"
        return WrongState(f"{what}: {producer} is {self.state.value}; {NEXT[self.state]}")

    def _explained(self, error: KgctlError) -> str:
        name, code = repr(self.transactional_id), code_of(error)
        seconds = f"{self.timeout_ms / 1000:g} s"
        if code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            return (
                f"the transaction timeout of {seconds} is longer than transaction.max.timeout.ms of the broker "
                f"({error.name})"
            )
        if code not in _LOST:
            return str(error)
        if self.is_open and self._now_ms - self._began_ms >= self.timeout_ms:
            return (
                f"the broker aborted the transaction of transactional id {name}, which was open longer than its timeout "
                f"of {seconds}: commit more often, or raise the timeout ({error.name})"
            )
        return (
            f"another producer with transactional id {name} has started, or an administrator has aborted the transaction "
            f"({error.name})"
        )
