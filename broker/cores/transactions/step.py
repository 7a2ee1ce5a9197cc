"""A step of the transaction coordinator, its effects, and what it may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeAlias

from broker.cores import core
from broker.cores.core import Effects, RequestContext
from broker.cores.transactions.hard_state import HardState
from broker.cores.transactions.records import NO_PRODUCER_EPOCH, Partition, StateRecord, TransactionRecord
from broker.cores.transactions.settings import TransactionSettings
from broker.cores.transactions.states import TransactionState
from broker.light_dataclasses import dataclass, field
from broker.light_named_tuples import NamedTuple
from broker.timers import Timers

# The kind of the timer of an ongoing transaction, and of the one timer of the check for expired transactional ids.
TIMEOUT, EXPIRY = "timeout", "expiry"
# One node has one coordinator for ever.
COORDINATOR_EPOCH = 0

NoEvent: TypeAlias = NoReturn  # this core emits none


class Markers(NamedTuple):
    """The markers of a prepared transaction: append one to each partition, then call `markers_written`.

    Partitions of `__consumer_offsets` stand for the pending offsets of their groups. The list may be empty.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    partitions: tuple[Partition, ...]


@dataclass(slots=True)
class TransactionEffects(Effects[StateRecord, NoEvent]):
    """The effects of a step. Write `markers` after the state records are appended; the same flush may hold both."""

    markers: list[Markers] = field(default_factory=list)


@dataclass(slots=True)
class CoordinatorState:
    """Everything that the coordinator holds between two steps.

    `last_epochs` has, for a transactional id, the epoch that its latest InitProducerId or EndTxn replaced, if the producer may ask
    again with that epoch (KIP-360). It is soft, as in Kafka: after a restart the producer is fenced instead. `unchecked` are the
    transactional ids that a running check for expired ones has not reached yet.
    """

    settings: TransactionSettings
    new_producer_id: Callable[[], int]
    transaction_version: Callable[[], int]
    offsets_partition: Callable[[str], int]
    hard: HardState
    timers: Timers
    last_epochs: dict[str, int] = field(default_factory=dict)
    unchecked: list[str] = field(default_factory=list)


class Step(core.Step[StateRecord, NoEvent]):
    """A step of the transaction coordinator."""

    __slots__ = ("coordinator", "markers", "transactions")

    def __init__(
        self, coordinator: CoordinatorState, now_ms: int, wall_ms: int, context: RequestContext | None = None
    ) -> None:
        super().__init__(coordinator.hard.apply, coordinator.timers, now_ms, wall_ms, context)
        self.coordinator = coordinator
        self.transactions = coordinator.hard.transactions
        self.markers: list[Markers] = []

    def effects(self) -> TransactionEffects:
        return TransactionEffects(
            self.state_records, self.replies, self.timers.wake_at(), self.events, self.unanswered, self.markers
        )

    def last_epoch(self, transactional_id: str) -> int:
        """The epoch before the present one, if a producer may still ask with it; otherwise -1."""
        return self.coordinator.last_epochs.get(transactional_id, NO_PRODUCER_EPOCH)

    def set_last_epoch(self, transactional_id: str, epoch: int) -> None:
        if epoch == NO_PRODUCER_EPOCH:
            self.coordinator.last_epochs.pop(transactional_id, None)
        else:
            self.coordinator.last_epochs[transactional_id] = epoch

    def write_markers(self, record: TransactionRecord) -> None:
        """Ask for the markers of a prepared transaction."""
        self.markers.append(
            Markers(
                record.transactional_id,
                record.producer_id,
                record.producer_epoch,
                COORDINATOR_EPOCH,
                record.state is TransactionState.PREPARE_COMMIT,
                record.partitions,
            )
        )
