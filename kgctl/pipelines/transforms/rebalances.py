"""Every rebalance of every group, from the events of kgctl's broker or from the records of any cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from kgctl.client.admin.group_records import group_record
from kgctl.pipelines.schemas.groups import QUARANTINE, REBALANCES
from kgctl.pipelines.schemas.sources import RAW_COLUMNS
from kgctl.pipelines.transforms.decode import GROUP, LAST_MS, MALFORMED_VALUE, UNKNOWN_VALUE
from kgctl.pipelines.transforms.rebalance_rules import (
    Event,
    OpenRebalance,
    Rebalance,
    follow,
)
from kgctl.pipelines.transforms.stored_log import StoredLog

EVENT_VERSION = 1

_EVENT_DDL = (
    "version bigint, `group` string, event string, generation int, `timestamp` bigint, cause string, reason string, "
    "joined array<string>, `left` array<string>, members int, prepare_ms bigint, complete_ms bigint, "
    "partitions_moved int, commits_rejected bigint, group_type string"
)
# REBALANCES with times as numbers: timestamps in a Python worker depend on its time zone.
_MADE_DDL = (
    "`group` string, generation int, started_ms bigint, ended_ms bigint, duration_ms bigint, duration_source string, "
    "cause string, reason string, joined array<string>, `left` array<string>, members int, moved_parts int, skew double, "
    "commits_rejected bigint, group_type string"
)
_MADE = Row(*Rebalance.__slots__)


def from_events(raw: DataFrame) -> DataFrame:
    """The rows of REBALANCES from the records of `__kgctl_group_events`, for batches and streams.

    `skew` is null, since events do not contain it. Records that are not events of version 1 are left out; see `quarantine`.
    """
    events = _events(raw).where(_reason().isNull() & f.col("value").isNotNull())
    return _followed(events.select("event.*", "log_partition", "log_offset"), FromEvents())


def quarantine(raw: DataFrame) -> DataFrame:
    """The rows of QUARANTINE: records of `__kgctl_group_events` that `from_events` leaves out."""
    rows = _events(raw).withColumn("reason", _reason()).where("reason is not null and value is not null")
    return rows.select(*QUARANTINE.column_names)


def from_log(decoded: DataFrame) -> DataFrame:
    """The rows of REBALANCES from decoded records of `__consumer_offsets`, for batches and streams.

    Compares each record of a group with those before it. If the first one of a classic group is of a generation above 1,
    `joined`, `left` and `moved_parts` are null. The state of a deleted group is dropped.
    """
    rows = decoded.where(f.col("kind") == GROUP).selectExpr(
        "`group`",
        "key",
        "value",
        "unix_millis(`timestamp`) as log_ms",
        "`partition` as log_partition",
        "`offset` as log_offset",
    )
    return _followed(rows, FromLog())


class FromEvents(StatefulProcessor):
    """Keyed by group; the state is an `OpenRebalance`."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.open = handle.getValueState("open", "started_ms bigint, commits_rejected bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        state = OpenRebalance(*self.open.get()) if self.open.exists() else OpenRebalance()
        for row in _in_order(rows):
            state, rebalance = follow(state, _event(row))
            if rebalance is not None:
                yield _MADE(*astuple(rebalance))
        if state == OpenRebalance():
            self.open.clear()
        else:
            self.open.update((state.started_ms, state.commits_rejected))

    def close(self) -> None:
        pass


class FromLog(StatefulProcessor):
    """Keyed by group; the state is a `StoredLog`."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.before = handle.getValueState("before", "log string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        log = StoredLog.from_json(self.before.get()[0]) if self.before.exists() else StoredLog()
        for row in _in_order(rows):
            record = group_record(bytes(row["key"]), row["value"], row["log_ms"])
            for rebalance in () if record is None else log.add(record):
                yield _MADE(*astuple(rebalance))
        text = log.to_json()
        if text:
            self.before.update((text,))
        else:
            self.before.clear()

    def close(self) -> None:
        pass


def _events(raw: DataFrame) -> DataFrame:
    text = f.try_validate_utf8(f.col("value").cast("string"))
    columns = [column.name for column in RAW_COLUMNS]
    return raw.select(
        *columns,
        f.col("partition").alias("log_partition"),
        f.col("offset").alias("log_offset"),
        f.from_json(text, _EVENT_DDL).alias("event"),
    )


def _reason() -> Column:
    event = f.col("event")
    is_valid = (
        event["version"].isNotNull()
        & (event["version"] > 0)
        & event["group"].isNotNull()
        & event["event"].isNotNull()
        & event["generation"].isNotNull()
        & event["timestamp"].between(0, LAST_MS)
    )
    return f.when(event["version"] > EVENT_VERSION, UNKNOWN_VALUE).when(
        ~f.coalesce(is_valid, f.lit(False)), MALFORMED_VALUE
    )


def _followed(rows: DataFrame, processor: StatefulProcessor) -> DataFrame:
    made = rows.groupBy("group").transformWithState(processor, _MADE_DDL, "append", "none")
    times = {"started": f.timestamp_millis("started_ms"), "ended": f.timestamp_millis("ended_ms")}
    return made.withColumns(times).select(*REBALANCES.column_names)


def _in_order(rows: Iterator[Row]) -> list[Row]:
    """In log order: the rows of a group in a batch come in any order."""
    return sorted(rows, key=lambda row: (row["log_partition"], row["log_offset"]))


def _event(row: Row) -> Event:
    return Event(
        group=row["group"],
        event=row["event"],
        generation=row["generation"],
        at_ms=row["timestamp"],
        cause=row["cause"],
        reason=row["reason"],
        joined=tuple(row["joined"] or ()),
        left=tuple(row["left"] or ()),
        members=row["members"],
        prepare_ms=row["prepare_ms"],
        complete_ms=row["complete_ms"],
        partitions_moved=row["partitions_moved"],
        commits_rejected=row["commits_rejected"] or 0,
        group_type=row["group_type"],
    )
