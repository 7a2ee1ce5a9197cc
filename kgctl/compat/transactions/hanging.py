"""`find-hanging`: open transactions that no coordinator will end."""

from __future__ import annotations

import time

from kgctl.client.admin.aborts import find_hanging
from kgctl.compat.hash_order import in_hash_order
from kgctl.compat.java_errors import java_error
from kgctl.compat.options import Arguments
from kgctl.compat.tool import Session
from kgctl.compat.transactions.table import Refused, show
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import HangingTransaction

_HEADER = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
_MINUTE_MS = 60_000


def run_find_hanging(session: Session, found: Arguments) -> None:
    topic, partition, broker = found.value("topic"), found.number("partition"), found.number("broker-id")
    if topic is None and broker is None:
        raise Refused(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if partition is not None and topic is None:
        raise Refused("The --partition argument requires --topic to be provided")
    minutes = found.number("max-transaction-timeout") or 0
    now_ms = time.time_ns() // 1_000_000
    steps = find_hanging(
        session.admin.cluster,
        None if topic is None else [topic],
        None if partition is None else [partition],
        broker,
        minutes * _MINUTE_MS,
        now_ms,
    )
    rows = session.run(steps, "describeProducers")
    for row in rows:
        if row.error is not None:
            raise java_error(row.error, call="describeProducers").within()
    show(session, _HEADER, [_cells(row, now_ms) for row in _in_order(rows)])


def _in_order(rows: list[HangingTransaction]) -> list[HangingTransaction]:
    """Rows in the tool's order: by producer, and by partition, each in the order of a HashMap."""
    by_key: dict[TopicPartition, list[HangingTransaction]] = {}
    for row in rows:
        by_key.setdefault(TopicPartition(row.topic, row.partition), []).append(row)
    by_producer: dict[int, list[HangingTransaction]] = {}
    for key in in_hash_order(by_key, sized=True):
        for row in by_key[key]:
            by_producer.setdefault(row.producer_id or 0, []).append(row)
    return [row for producer in in_hash_order(by_producer, hash_of=_hash) for row in by_producer[producer]]


def _hash(number: int) -> int:
    return (number ^ number >> 32) & 0xFFFFFFFF


def _cells(row: HangingTransaction, now_ms: int) -> tuple[object, ...]:
    epoch, start = row.coordinator_epoch, row.start_offset
    return (
        row.topic,
        row.partition,
        row.producer_id,
        row.producer_epoch,
        -1 if epoch is None else epoch,
        -1 if start is None else start,
        row.last_timestamp,
        (now_ms - (row.last_timestamp or 0)) // _MINUTE_MS,
    )
