"""Transactions from the records of `__transaction_state`, and figures of each transactional id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from broker.protocol.transaction_log import decode_value
from broker.protocol.wire_types import DecodeError
from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.schemas import topics as schemas
from kgctl.pipelines.transforms import wire
from kgctl.pipelines.transforms.transaction_rules import ABORTED, COMMITTED, follow, from_json

_KEY_VERSION = 0
# schemas.TRANSACTIONS with times as numbers: timestamps in a Python worker depend on its time zone.
_ENDED_DDL = (
    "transactional_id string, producer_id bigint, producer_epoch int, outcome string, started_ms bigint, decided_ms bigint, "
    "ended_ms bigint, timeout_ms bigint, partitions array<struct<topic: string, parts: array<int>>>, log_partition int, "
    "log_offset bigint"
)
_ENDED = Row(
    *("transactional_id", "producer_id", "producer_epoch", "outcome", "started_ms", "decided_ms", "ended_ms"),
    *("timeout_ms", "partitions", "log_partition", "log_offset"),
)
_PLACE = Row("topic", "parts")
STATES_DDL = (
    "transactional_id string, state string, producer_id bigint, producer_epoch int, open_since_ms bigint, open_ms bigint, "
    "open_partitions array<struct<topic: string, parts: array<int>>>, timeout_ms bigint"
)
_P95_ACCURACY = 10_000


class Undecodable(KgctlError):
    """A record of `__transaction_state` that a newer Kafka wrote, or a damaged one. Leaving it out would give wrong figures."""

    name = "UNDECODABLE"


def ended(raw: DataFrame) -> DataFrame:
    """The rows of schemas.TRANSACTIONS, for batches and streams. A record that cannot be decoded raises Undecodable in a task."""
    key = f.col("key")
    name = wire.text(key, f.lit(5), wire.int16(key, f.lit(3)))
    rows = raw.where(wire.int16(key, f.lit(1)) == _KEY_VERSION).select(
        name.alias("transactional_id"),
        "value",
        f.col("partition").alias("log_partition"),
        f.col("offset").alias("log_offset"),
    )
    followed = rows.groupBy("transactional_id").transformWithState(Transactions(), _ENDED_DDL, "append", "none")
    spent_ms = f.coalesce("decided_ms", "ended_ms") - f.col("started_ms")
    with_figures = followed.withColumns(
        {
            **{name: f.timestamp_millis(f"{name}_ms") for name in ("started", "decided", "ended")},
            "duration_ms": _not_negative(f.col("ended_ms") - f.col("started_ms")),
            "markers_ms": _not_negative(f.col("ended_ms") - f.col("decided_ms")),
            "timed_out": f.when(f.col("outcome") == COMMITTED, False).when(
                f.col("decided_ms").isNotNull(), spent_ms >= f.col("timeout_ms")
            ),
            "partition_count": f.aggregate("partitions", f.lit(0), lambda count, one: count + f.size(one["parts"])),
        }
    )
    return with_figures.select(*schemas.TRANSACTIONS.column_names)


class Transactions(StatefulProcessor):
    """Keyed by transactional id; the state is an `OpenTransaction`, so an id without one takes no memory."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.open = handle.getValueState("open", "open string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        before = from_json(self.open.get()[0]) if self.open.exists() else None
        (name,) = key
        # The rows of an id in a batch come in any order.
        for row in sorted(rows, key=lambda row: (row["log_partition"], row["log_offset"])):
            try:
                value = None if row["value"] is None else decode_value(bytes(row["value"]))
            except DecodeError as error:
                place = f"__transaction_state-{row['log_partition']}, offset {row['log_offset']}"
                raise Undecodable(f"{place}: {error}") from None
            before, done = follow(before, value)
            if done is not None:
                partitions = None
                if done.partitions is not None:
                    partitions = [_PLACE(topic, list(parts)) for topic, parts in done.partitions]
                yield _ENDED(
                    name,
                    done.producer_id,
                    done.producer_epoch,
                    done.outcome,
                    done.started_ms,
                    done.decided_ms,
                    done.ended_ms,
                    done.timeout_ms,
                    partitions,
                    row["log_partition"],
                    row["log_offset"],
                )
        if before is None:
            self.open.clear()
        else:
            self.open.update((before.to_json(),))

    def close(self) -> None:
        pass


def producers(transactions: DataFrame, states: DataFrame, now_ms: int) -> DataFrame:
    """The rows of schemas.PRODUCERS: all ids of schemas.TRANSACTIONS rows and of `states`, which is of STATES_DDL."""
    counted = transactions.groupBy("transactional_id").agg(
        f.count("*").alias("transactions"),
        f.count_if(f.col("outcome") == COMMITTED).alias("committed"),
        f.count_if(f.col("outcome") == ABORTED).alias("aborted"),
        f.count_if("timed_out").alias("timed_out"),
        f.avg("duration_ms").alias("mean_ms"),
        f.percentile_approx("duration_ms", 0.95, _P95_ACCURACY).cast("double").alias("p95_ms"),
        f.max("duration_ms").alias("max_ms"),
        f.min("ended").alias("first_ended"),
        f.max("ended").alias("last_ended"),
    )
    rows = counted.join(states, "transactional_id", "full")
    rows = rows.fillna(0, ["transactions", "committed", "aborted", "timed_out"]).withColumns(
        {
            "at": f.timestamp_millis(f.lit(now_ms)),
            "aborted_share": f.when(f.col("transactions") > 0, f.col("aborted") / f.col("transactions")),
            "open_since": f.timestamp_millis("open_since_ms"),
        }
    )
    return rows.select(*schemas.PRODUCERS.column_names)


def _not_negative(ms: Column) -> Column:
    """Clocks of coordinators differ."""
    return f.when(ms.isNotNull(), f.greatest(ms, f.lit(0)))
