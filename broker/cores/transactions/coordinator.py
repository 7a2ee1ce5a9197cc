"""The transaction coordinator: dispatches requests and timers to their handlers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from broker.cores.core import RequestContext
from broker.cores.transactions import end, expiry, partitions, timeouts
from broker.cores.transactions.describe import describe_transactions, list_transactions
from broker.cores.transactions.hard_state import HardState
from broker.cores.transactions.init_producer_id import init_producer_id
from broker.cores.transactions.records import Partition, StateRecord, TransactionRecord
from broker.cores.transactions.settings import TransactionSettings
from broker.cores.transactions.states import TransactionState
from broker.cores.transactions.step import EXPIRY, TIMEOUT, CoordinatorState, Step, TransactionEffects
from broker.cores.transactions.transition import BUMPS_EPOCH
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.list_transactions import ListTransactionsRequest
from broker.protocol.wire_types import Message
from broker.timers import Timers

# Every request that the coordinator handles.
HANDLERS: dict[type[Message], Callable[[Step, Any], None]] = {
    InitProducerIdRequest: init_producer_id,
    AddPartitionsToTxnRequest: partitions.add_partitions,
    AddOffsetsToTxnRequest: partitions.add_offsets,
    EndTxnRequest: end.end_transaction,
    DescribeTransactionsRequest: describe_transactions,
    ListTransactionsRequest: list_transactions,
}
# What runs when a timer expires, by its kind; the rest of its key is passed as arguments.
TIMERS: dict[str, Callable[..., None]] = {TIMEOUT: timeouts.on_timeout, EXPIRY: expiry.check_ids}
# An application that dies leaves many transactions with one deadline; requests get their turn in between.
TIMERS_PER_STEP = 100


class TransactionCoordinator:
    """All transactional ids of a broker; a `Core`.

    `new_producer_id` draws the next id of the broker, durable with the flush of the step. `transaction_version` is the finalized level
    of that feature. `offsets_partition` is the partition of `__consumer_offsets` that holds a group.
    """

    def __init__(
        self,
        settings: TransactionSettings,
        new_producer_id: Callable[[], int],
        transaction_version: Callable[[], int],
        offsets_partition: Callable[[str], int],
    ) -> None:
        self._state = CoordinatorState(
            settings, new_producer_id, transaction_version, offsets_partition, HardState(), Timers()
        )

    # ---- recovery ------------------------------------------------------------------------------------------------

    def apply(self, state_record: StateRecord, /) -> None:
        self._state.hard.apply(state_record)

    def resume(self, now_ms: int, wall_ms: int) -> TransactionEffects:
        """Set the deadlines of ongoing transactions, and name the markers of prepared ones, of which some may be written."""
        step = Step(self._state, now_ms, wall_ms)
        for record in step.transactions.values():
            if record.state is TransactionState.ONGOING:
                timeouts.resume_timeout(step, record)
            elif record.state.is_prepared:
                step.write_markers(record)
        expiry.schedule_check(step)
        return step.effects()

    # ---- running -------------------------------------------------------------------------------------------------

    def handle(self, request: Message, context: RequestContext, now_ms: int) -> TransactionEffects:
        step = Step(self._state, now_ms, context.wall_ms, context)
        HANDLERS[type(request)](step, request)
        return step.effects()

    def advance(self, now_ms: int, wall_ms: int) -> TransactionEffects:
        """Run timers that are due: a part of them if there are many. The rest keep the deadline due."""
        step = Step(self._state, now_ms, wall_ms)
        for _ in range(TIMERS_PER_STEP):
            if (key := step.timers.pop_due(now_ms)) is None:
                break
            kind, *arguments = key
            TIMERS[kind](step, *arguments)
        return step.effects()

    def markers_written(self, transactional_id: str, now_ms: int, wall_ms: int) -> TransactionEffects:
        """All markers of a prepared transaction are appended: complete it."""
        step = Step(self._state, now_ms, wall_ms)
        end.complete(step, transactional_id)
        return step.effects()

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        verified: Collection[Partition],
        *,
        add: bool,
        now_ms: int,
        wall_ms: int,
    ) -> tuple[TransactionEffects, dict[Partition, ErrorCode]]:
        """Whether the producer may write to these partitions in its transaction (KIP-890).

        Without `add`, each must be part of the ongoing transaction already; otherwise its error is TRANSACTION_ABORTABLE. With
        `add`, they become part of it.
        """
        step = Step(self._state, now_ms, wall_ms)
        if add:
            error = partitions.add(
                step, transactional_id, producer_id, producer_epoch, tuple(verified), client_version=BUMPS_EPOCH
            )
            errors = dict.fromkeys(verified, error)
        else:
            errors = partitions.verify(step, transactional_id, producer_id, producer_epoch, verified)
        return step.effects(), errors

    def wake_at(self) -> int | None:
        """The deadline that the last effects named."""
        return self._state.timers.wake_at()

    # ---- read-only views -----------------------------------------------------------------------------------------

    def transaction(self, transactional_id: str) -> TransactionRecord | None:
        """The state of a transactional id."""
        return self._state.hard.transactions.get(transactional_id)

    def transactions(self) -> Collection[TransactionRecord]:
        """The states of all transactional ids."""
        return self._state.hard.transactions.values()

    def deadlines(self) -> dict[tuple[str, ...], int]:
        """Every timer, (kind[, transactional id]), with its deadline."""
        return self._state.timers.deadlines()
