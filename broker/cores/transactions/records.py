"""State records of transactional ids, as `__transaction_state` holds them."""

from __future__ import annotations

from typing import TypeAlias

from broker.cores.transactions.states import STORED, TransactionState
from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from broker.protocol.transaction_log import (
    PARTITIONS,
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    partition_for,
)
from broker.protocol.wire_types import DecodeError

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1

Partition: TypeAlias = "tuple[str, int]"  # topic and index


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionRecord:
    """The state of a transactional id.

    `partitions` are sorted. `previous_producer_id` is set while `producer_id` is new: until the next change of state.
    `next_producer_id` takes over when the transaction completes; it is set only if the epochs of `producer_id` are exhausted. Kafka 4.1
    forgets both in a restart. `client_transaction_version` is the level of transaction.version that the client used.
    """

    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: tuple[Partition, ...] = ()
    start_timestamp_ms: int = NO_TIMESTAMP
    update_timestamp_ms: int
    client_transaction_version: int = 0


@dataclass(frozen=True, slots=True)
class TransactionTombstone:
    """The transactional id has expired."""

    transactional_id: str
    timestamp_ms: int


StateRecord: TypeAlias = "TransactionRecord | TransactionTombstone"


class TransactionsRow(NamedTuple):
    """A state record as a row of `__transaction_state`. A tombstone has no value."""

    partition: int
    key: bytes
    value: bytes | None
    timestamp_ms: int


def to_row(record: StateRecord, transaction_version: int, partitions: int = PARTITIONS) -> TransactionsRow:
    """Encode a record as Kafka does at this level of transaction.version.

    Level 0 has no field for the previous and next producer id and for the client's version. `partitions` is the partition count
    of `__transaction_state`.
    """
    partition, key = partition_for(record.transactional_id, partitions), encode_key(record.transactional_id)
    if isinstance(record, TransactionTombstone):
        return TransactionsRow(partition, key, None, record.timestamp_ms)
    value = encode_value(_value(record), 1 if transaction_version else 0)
    return TransactionsRow(partition, key, value, record.update_timestamp_ms)


def from_row(key: bytes, value: bytes | None, timestamp_ms: int) -> StateRecord | None:
    """Decode a row; None for a kind of key that this version does not know. Raises DecodeError for invalid bytes."""
    transactional_id = decode_key(key)
    if transactional_id is None:
        return None
    if value is None:
        return TransactionTombstone(transactional_id, timestamp_ms)
    return _record(transactional_id, decode_value(value))


def by_topic(partitions: tuple[Partition, ...]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics


def _value(record: TransactionRecord) -> TransactionLogValue:
    partitions = [
        TransactionLogValue.Partitions(topic=topic, partition_ids=indexes)
        for topic, indexes in by_topic(record.partitions).items()
    ]
    return TransactionLogValue(
        producer_id=record.producer_id,
        previous_producer_id=record.previous_producer_id,
        next_producer_id=record.next_producer_id,
        producer_epoch=record.producer_epoch,
        transaction_timeout_ms=record.timeout_ms,
        transaction_status=record.state.value,
        transaction_partitions=None if record.state is TransactionState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=record.update_timestamp_ms,
        transaction_start_timestamp_ms=record.start_timestamp_ms,
        client_transaction_version=record.client_transaction_version,
    )


def _record(transactional_id: str, value: TransactionLogValue) -> TransactionRecord:
    state = STORED.get(value.transaction_status)
    if state is None:
        raise DecodeError(f"transaction state {value.transaction_status} is not one that is stored")
    return TransactionRecord(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=tuple(
            (topic.topic, index) for topic in value.transaction_partitions or () for index in topic.partition_ids
        ),
        start_timestamp_ms=value.transaction_start_timestamp_ms,
        update_timestamp_ms=value.transaction_last_update_timestamp_ms,
        client_transaction_version=value.client_transaction_version,
    )
