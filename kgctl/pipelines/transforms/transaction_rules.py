"""Follows a transactional id from record to record of `__transaction_state`, up to the end of each transaction. No Spark.

Kafka writes Ongoing whenever partitions are added, PrepareCommit or PrepareAbort when the outcome is decided, and
CompleteCommit or CompleteAbort when all markers are written. Compaction keeps only the last record of an id.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from broker.protocol.transaction_log import TransactionLogValue

COMMITTED, ABORTED = "committed", "aborted"
# Kafka's TransactionState.
_ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _COMPLETE_COMMIT, _COMPLETE_ABORT, _EPOCH_FENCE = 1, 2, 3, 4, 5, 7
_OUTCOMES = {_COMPLETE_COMMIT: COMMITTED, _COMPLETE_ABORT: ABORTED}

Partitions = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that has not ended. Times are ms since 1970; `decided_ms` is None before the outcome is decided."""

    producer_id: int
    producer_epoch: int
    started_ms: int
    partitions: Partitions
    decided_ms: int | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """The columns of schemas.TRANSACTIONS, with times in ms since 1970."""

    producer_id: int
    producer_epoch: int
    outcome: str
    started_ms: int | None
    decided_ms: int | None
    ended_ms: int
    timeout_ms: int
    partitions: Partitions | None


def from_json(text: str) -> OpenTransaction:
    fields = json.loads(text)
    fields["partitions"] = tuple((topic, tuple(parts)) for topic, parts in fields["partitions"])
    return OpenTransaction(**fields)


def follow(
    before: OpenTransaction | None, value: TransactionLogValue | None
) -> tuple[OpenTransaction | None, EndedTransaction | None]:
    """The open transaction after the next record of the id, and the one that ends with it. `value` None is a tombstone."""
    if value is None:
        return None, None
    if before is not None and before.started_ms != value.transaction_start_timestamp_ms:
        before = None
    if value.transaction_status in _OUTCOMES:
        return None, _ended(before, value)
    if value.transaction_status not in (_ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _EPOCH_FENCE):
        return None, None
    now = OpenTransaction(
        value.producer_id, value.producer_epoch, value.transaction_start_timestamp_ms, _partitions(value)
    )
    if value.transaction_status == _ONGOING:
        return now, None
    if value.transaction_status in (_PREPARE_COMMIT, _PREPARE_ABORT):
        now = replace(now, decided_ms=value.transaction_last_update_timestamp_ms)
    if before is not None:
        # The decision raises the epoch, or gives the id another producer (KIP-890).
        now = replace(now, producer_id=before.producer_id, producer_epoch=before.producer_epoch)
    return now, None


def _ended(before: OpenTransaction | None, value: TransactionLogValue) -> EndedTransaction:
    started_ms = value.transaction_start_timestamp_ms
    previous = value.previous_producer_id
    return EndedTransaction(
        before.producer_id if before is not None else previous if previous >= 0 else value.producer_id,
        before.producer_epoch if before is not None else value.producer_epoch,
        _OUTCOMES[value.transaction_status],
        started_ms if started_ms >= 0 else None,
        None if before is None else before.decided_ms,
        value.transaction_last_update_timestamp_ms,
        value.transaction_timeout_ms,
        None if before is None else before.partitions,
    )


def _partitions(value: TransactionLogValue) -> Partitions:
    found = [(entry.topic, tuple(sorted(entry.partition_ids))) for entry in value.transaction_partitions or ()]
    return tuple(sorted(found))
