"""The tables about transactions and producers. The first columns are those of kafka-transactions.sh, in its order."""

from __future__ import annotations

from typing import Any

from kgctl.model.transactions import (
    HangingTransaction,
    ProducerRow,
    TransactionAbort,
    TransactionListing,
    TransactionPartition,
    TransactionRow,
)
from kgctl.render.columns import RELUCTANTLY, Column, Layout, Shown, Tone
from kgctl.render.parts import ERROR, ID, NAME, STATUS
from kgctl.watch.figures import span

TONES = {
    "Ongoing": Tone.CHANGING,
    "PrepareCommit": Tone.CHANGING,
    "PrepareAbort": Tone.CHANGING,
    "PrepareEpochFence": Tone.CHANGING,
    "Dead": Tone.BAD,
    "Empty": Tone.QUIET,
    "CompleteCommit": Tone.QUIET,
    "CompleteAbort": Tone.QUIET,
}
STATE = Column("STATE", "state", 17, tones=TONES)


def _age(row: Any) -> str | None:
    return None if row.age_ms is None else span(row.age_ms / 1000)


def _duration_minutes(row: Any) -> int | None:
    return None if row.duration_ms is None else int(row.duration_ms // 60_000)


def _topic_partitions(row: Any) -> str | None:
    return ",".join(map(str, row.topic_partitions())) or None


AGE = Column("AGE", _age, 8)

TRANSACTION_LAYOUTS: dict[str, Layout] = {
    "transactions": Layout(
        TransactionListing,
        (
            NAME("TRANSACTIONAL-ID", "transactional_id", 16),
            Column("COORDINATOR", "coordinator_id", 11, rank=1),
            Column("PRODUCER-ID", "producer_id", 11, rank=2),
            STATE,
            AGE,
            Column("#PARTITIONS", "partitions", 11),
        ),
    ),
    "transaction-states": Layout(
        TransactionRow,
        (
            Column("COORDINATOR", "coordinator_id", 11, rank=1),
            NAME("TRANSACTIONAL-ID", "transactional_id", 16),
            Column("PRODUCER-ID", "producer_id", 11, rank=4),
            Column("PRODUCER-EPOCH", "producer_epoch", 14, rank=2),
            STATE,
            Column("TIMEOUT-MS", "timeout_ms", 10, rank=5),
            Column("START-TIME-MS", "started_ms", 13, rank=3),
            Column("DURATION-MS", "age_ms", 11, brief=_age),
            ID("TOPIC-PARTITIONS", _topic_partitions, 16),
            ERROR,
        ),
    ),
    "transaction-partitions": Layout(
        TransactionPartition,
        (
            NAME("TRANSACTIONAL-ID", "transactional_id", 16),
            NAME("TOPIC", "topic", 15),
            Column("PARTITION", "partition", 9),
            Column("START-OFFSET", "start_offset", 12),
            Column("LAST-STABLE-OFFSET", "last_stable_offset", 18, rank=1),
            Column("LOG-END-OFFSET", "log_end_offset", 14, rank=2),
            Column("WAITING", "waiting_records", 7),
            AGE,
            ERROR,
        ),
        block="transactional_id",
    ),
    "hanging-transactions": Layout(
        HangingTransaction,
        (
            NAME("TOPIC", "topic", 15),
            Column("PARTITION", "partition", 9),
            Column("PRODUCER-ID", "producer_id", 11, rank=RELUCTANTLY),
            Column("PRODUCER-EPOCH", "producer_epoch", 14, rank=3),
            Column("COORDINATOR-EPOCH", "coordinator_epoch", 17, rank=2),
            Column("START-OFFSET", "start_offset", 12),
            Column("LAST-TIMESTAMP", "last_timestamp", 14, rank=1),
            Column("DURATION(MIN)", _duration_minutes, 13),
            Column("WAITING", "waiting_records", 7),
            ERROR,
        ),
    ),
    "producers": Layout(
        ProducerRow,
        (
            Column("PRODUCER-ID", "producer_id", 11),
            Column("PRODUCER-EPOCH", "producer_epoch", 14, rank=RELUCTANTLY),
            Column("COORDINATOR-EPOCH", "coordinator_epoch", 17, rank=1),
            Column("LAST-SEQUENCE", "last_sequence", 13, rank=2),
            Column("LAST-TIMESTAMP", "last_timestamp", 14, rank=3),
            Column("START-OFFSET", "start_offset", 12, tones=Tone.CHANGING),
            NAME("TRANSACTIONAL-ID", "transactional_id", 16, Shown.IF_ANY),
            NAME("TOPIC", "topic", 15),
            Column("PARTITION", "partition", 9),
            ERROR,
        ),
    ),
    "transaction-aborts": Layout(
        TransactionAbort,
        (
            NAME("TRANSACTIONAL-ID", "transactional_id", 16, Shown.IF_ANY),
            NAME("TOPIC", "topic", 15, Shown.IF_ANY),
            Column("PARTITION", "partition", 9, Shown.IF_ANY),
            Column("START-OFFSET", "start_offset", 12, Shown.IF_ANY, rank=RELUCTANTLY + 1),
            Column("PRODUCER-ID", "producer_id", 11, rank=2),
            Column("PRODUCER-EPOCH", "producer_epoch", 14, rank=1),
            Column("STATE", "state", 17, Shown.IF_ANY, rank=RELUCTANTLY, tones=TONES),
            AGE,
            Column("METHOD", "method", 6, rank=3),
            STATUS,
            ERROR,
        ),
    ),
}
