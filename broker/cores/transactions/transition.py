"""The next record of a transactional id for each transition."""

from __future__ import annotations

from collections.abc import Iterable

from broker.cores.transactions.records import NO_PRODUCER_ID, NO_TIMESTAMP, Partition, TransactionRecord
from broker.cores.transactions.states import TransactionState
from broker.light_dataclasses import replace

MAX_EPOCH = 2**15 - 1
# Since this level of transaction.version the end of a transaction bumps the epoch (KIP-890).
BUMPS_EPOCH = 2


def is_exhausted(epoch: int) -> bool:
    """Whether no client may use a later epoch. The last epoch is kept for fencing."""
    return epoch >= MAX_EPOCH - 1


def bumped(epoch: int) -> int:
    return min(epoch + 1, MAX_EPOCH)


def new(transactional_id: str, producer_id: int, timeout_ms: int, wall_ms: int) -> TransactionRecord:
    return TransactionRecord(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=0,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        update_timestamp_ms=wall_ms,
    )


def initialized(
    record: TransactionRecord, producer_id: int, epoch: int, timeout_ms: int, wall_ms: int
) -> TransactionRecord:
    """An InitProducerId: Empty, with the id and epoch that the producer is given."""
    return replace(
        record,
        producer_id=producer_id,
        previous_producer_id=NO_PRODUCER_ID if producer_id == record.producer_id else record.producer_id,
        producer_epoch=epoch,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        partitions=(),
        start_timestamp_ms=NO_TIMESTAMP,
        update_timestamp_ms=wall_ms,
    )


def ongoing(
    record: TransactionRecord, added: Iterable[Partition], client_version: int, wall_ms: int
) -> TransactionRecord:
    """The transaction begins, or continues, with these partitions, which it does not have yet."""
    return replace(
        record,
        previous_producer_id=NO_PRODUCER_ID,
        state=TransactionState.ONGOING,
        partitions=tuple(sorted((*record.partitions, *added))),
        start_timestamp_ms=wall_ms if record.state.is_idle else record.start_timestamp_ms,
        update_timestamp_ms=wall_ms,
        client_transaction_version=client_version,
    )


def prepared(
    record: TransactionRecord,
    *,
    is_commit: bool,
    epoch: int,
    client_version: int,
    wall_ms: int,
    next_producer_id: int = NO_PRODUCER_ID,
) -> TransactionRecord:
    """The outcome is decided. A transaction that had no partition starts now."""
    return replace(
        record,
        previous_producer_id=NO_PRODUCER_ID,
        next_producer_id=next_producer_id,
        producer_epoch=epoch,
        state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
        start_timestamp_ms=wall_ms if record.state.is_idle else record.start_timestamp_ms,
        update_timestamp_ms=wall_ms,
        client_transaction_version=client_version,
    )


def completed(record: TransactionRecord, wall_ms: int) -> TransactionRecord:
    """All markers are written. The next producer id takes over, if there is one."""
    is_commit = record.state is TransactionState.PREPARE_COMMIT
    rotates = record.client_transaction_version >= BUMPS_EPOCH and record.next_producer_id != NO_PRODUCER_ID
    return replace(
        record,
        producer_id=record.next_producer_id if rotates else record.producer_id,
        previous_producer_id=record.producer_id if rotates else NO_PRODUCER_ID,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=0 if rotates else record.producer_epoch,
        state=TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
        partitions=(),
        update_timestamp_ms=wall_ms,
    )
