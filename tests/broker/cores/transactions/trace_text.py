"""The outcome of a line of a golden scenario, as text."""

from __future__ import annotations

from broker.cores.transactions.records import Partition, StateRecord, TransactionTombstone
from broker.cores.transactions.step import Markers
from tests.broker.cores.groups.trace_text import show_seconds
from tests.broker.cores.transactions.world import WALL_MS


def show_partitions(partitions: tuple[Partition, ...]) -> str:
    return ",".join(f"{topic}/{index}" for topic, index in partitions) or "-"


def show_record(record: StateRecord) -> str:
    if isinstance(record, TransactionTombstone):
        return f"{record.transactional_id}: tombstone"
    words = [f"{record.transactional_id}: {record.state.kafka_name}, producer {record.producer_id}"]
    words.append(f"epoch {record.producer_epoch} timeout {show_seconds(record.timeout_ms)}")
    if record.previous_producer_id != -1:
        words.append(f"previous {record.previous_producer_id}")
    if record.next_producer_id != -1:
        words.append(f"next {record.next_producer_id}")
    if record.start_timestamp_ms != -1:
        words.append(f"since {show_seconds(record.start_timestamp_ms - WALL_MS)}")
    words.append(f"at {show_seconds(record.update_timestamp_ms - WALL_MS)}")
    if record.client_transaction_version:
        words.append(f"client {record.client_transaction_version}")
    if record.partitions:
        words.append(show_partitions(record.partitions))
    return " ".join(words)


def show_markers(markers: Markers) -> str:
    outcome = "commit" if markers.is_commit else "abort"
    producer = f"producer {markers.producer_id} epoch {markers.producer_epoch}"
    return f"{markers.transactional_id}: {outcome} {producer} {show_partitions(markers.partitions)}"
