"""Rows about transactions and the producers of partitions."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.changes import PLANNED
from kgctl.model.failure import RowError
from kgctl.model.groups import TopicPartitions
from kgctl.model.topic_partition import TopicPartition

STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
ONGOING, PREPARE_COMMIT = "Ongoing", "PrepareCommit"
# A transaction in one of these states holds back read_committed readers.
OPEN_STATES = (ONGOING, PREPARE_COMMIT, "PrepareAbort", "PrepareEpochFence")
# How an abort works: a new epoch for the transactional id, or a marker in one partition.
FENCE, MARKER = "fence", "marker"


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id. `age_ms` and `partitions` are those of its open transaction."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str
    age_ms: int | None = None
    partitions: int | None = None


@dataclass(frozen=True, slots=True)
class TransactionListings:
    """The transactional ids of all brokers that answered, and the errors of the brokers that did not."""

    rows: tuple[TransactionListing, ...]
    errors: tuple[RowError, ...] = ()


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """The state of a transactional id. Times are ms, since 1970 or as durations; `age_ms` is that of an open transaction."""

    transactional_id: str
    coordinator_id: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    state: str | None = None
    timeout_ms: int | None = None
    started_ms: int | None = None
    age_ms: int | None = None
    partitions: tuple[TopicPartitions, ...] = ()
    error: RowError | None = None

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    def topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(entry.topic, number) for entry in self.partitions for number in entry.partitions]


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """A producer that a partition remembers; `start_offset` is the first of its open transaction.

    `transactional_id` is None for an idempotent producer, or if the cluster does not list it.
    """

    topic: str
    partition: int
    producer_id: int | None = None
    producer_epoch: int | None = None
    coordinator_epoch: int | None = None
    last_sequence: int | None = None
    last_timestamp: int | None = None
    start_offset: int | None = None
    transactional_id: str | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Why read_committed readers of a partition wait: the open transaction that starts at the last stable offset.

    The producer is None if the partition may not be asked for it; the transactional id if no coordinator lists the producer.
    `age_ms` counts from the start of the transaction, or, if no coordinator knows it, from the last record of the producer.
    """

    partition: TopicPartition
    last_stable_offset: int
    log_end_offset: int
    producer_id: int | None = None
    transactional_id: str | None = None
    age_ms: int | None = None

    @property
    def records(self) -> int:
        return self.log_end_offset - self.last_stable_offset


@dataclass(frozen=True, slots=True)
class GroupHold:
    """A partition whose lag a group cannot read while a transaction is open, if it reads committed."""

    group: str
    lag: int
    hold: Hold


@dataclass(frozen=True, slots=True)
class TransactionPartition:
    """A partition of an open transaction, and what read_committed readers do not see there.

    `waiting_records` counts from the first offset of this transaction. Without a start offset, it has no record there yet.
    """

    transactional_id: str
    topic: str | None
    partition: int | None
    start_offset: int | None = None
    last_stable_offset: int | None = None
    log_end_offset: int | None = None
    waiting_records: int | None = None
    age_ms: int | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class HangingTransaction:
    """An open transaction of a partition that no coordinator will end. `duration_ms` counts from its producer's last record."""

    topic: str
    partition: int
    producer_id: int | None = None
    producer_epoch: int | None = None
    coordinator_epoch: int | None = None
    start_offset: int | None = None
    last_timestamp: int | None = None
    duration_ms: int | None = None
    waiting_records: int | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class TransactionAbort:
    """A transaction to abort or aborted: of a transactional id, or in one partition."""

    method: str
    transactional_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    start_offset: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    coordinator_epoch: int | None = None
    state: str | None = None
    age_ms: int | None = None
    timeout_ms: int | None = None
    status: str = PLANNED
    error: RowError | None = None
