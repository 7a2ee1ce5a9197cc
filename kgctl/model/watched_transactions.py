"""Open transactions as the dashboard shows them: with their partitions, and the groups that wait for their end."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import HangingTransaction, TransactionPartition, TransactionRow

HANGING, OVERDUE = "hanging", "overdue"


@dataclass(frozen=True, slots=True)
class TransactionsSnapshot:
    """The transactions that coordinators have open, `total` of them, with the partitions of those in `rows`.

    `at_s` is of a monotonic clock, `wall_ms` since 1970. `errors`: why some may be missing.
    """

    at_s: float
    wall_ms: int
    rows: tuple[TransactionRow, ...]
    partitions: tuple[TransactionPartition, ...]
    total: int
    errors: tuple[RowError, ...] = ()


@dataclass(frozen=True, slots=True)
class HangingSnapshot:
    """The open transactions of partitions that no coordinator will end."""

    wall_ms: int
    rows: tuple[HangingTransaction, ...]


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """A group that cannot read past an open transaction, if it reads committed.

    `before` counts the offsets that it can still read first; at 0 it waits.
    """

    group: str
    partition: TopicPartition
    lag: int
    before: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """`transactional_id` is None for a hanging one; `state` is that of the coordinator, or HANGING, or OVERDUE.

    `waiting` counts the records that read_committed readers do not see.
    """

    key: str
    transactional_id: str | None
    state: str
    producer_id: int | None
    producer_epoch: int | None
    coordinator_id: int | None
    age_ms: int | None
    timeout_ms: int | None
    partitions: tuple[TransactionPartition, ...]
    partition_count: int
    waiting: int | None
    groups: tuple[WaitingGroup, ...] = ()

    @property
    def is_faulty(self) -> bool:
        return self.state in (HANGING, OVERDUE)
