"""Tables of transactions and producers."""

from __future__ import annotations

from collections.abc import Iterator

from broker.protocol.transaction_log import decode_key, decode_value
from kgctl.model.store import StoreAbortedTransaction, StoreProducer, StoreTransaction
from kgctl.store.groups import spelled
from kgctl.store.offline import Offline
from kgctl.store.times import iso

# The bytes of the states in __transaction_state, as Kafka numbers them.
STATES = {0: "Empty", 1: "Ongoing", 2: "PrepareCommit", 3: "PrepareAbort", 4: "CompleteCommit", 5: "CompleteAbort"}


def transactions(offline: Offline) -> Iterator[StoreTransaction]:
    for row in offline.directory.newest_rows("__transaction_state"):
        transactional_id = decode_key(row.key)
        if transactional_id is None or row.value is None:
            continue
        value = decode_value(row.value)
        yield StoreTransaction(
            transactional_id,
            value.producer_id,
            value.producer_epoch,
            STATES.get(value.transaction_status, str(value.transaction_status)),
            value.transaction_timeout_ms,
            iso(value.transaction_start_timestamp_ms),
            iso(value.transaction_last_update_timestamp_ms),
            spelled((one.topic, one.partition_ids) for one in value.transaction_partitions or ()),
        )


def producers(offline: Offline) -> Iterator[StoreProducer]:
    for partition in offline.partitions:
        for one in offline.directory.producers(partition):
            yield StoreProducer(
                partition.topic,
                partition.partition,
                one.producer_id,
                one.epoch,
                iso(one.last_timestamp),
                one.coordinator_epoch if one.coordinator_epoch >= 0 else None,
                one.transaction_offset if one.transaction_offset >= 0 else None,
            )


def aborted_transactions(offline: Offline) -> Iterator[StoreAbortedTransaction]:
    for partition in offline.partitions:
        for one in offline.directory.aborted(partition):
            yield StoreAbortedTransaction(
                partition.topic, partition.partition, one.producer_id, one.first_offset, one.last_offset
            )
