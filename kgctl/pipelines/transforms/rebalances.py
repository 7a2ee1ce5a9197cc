"""Every rebalance of every group and who came and left, from the events of kgctl's broker or the records of any cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from kgctl.client.admin.group_records import group_record
from kgctl.pipelines.schemas.groups import MEMBERSHIPS, QUARANTINE, REBALANCES
from kgctl.pipelines.schemas.sources import RAW_COLUMNS
from kgctl.pipelines.transforms import membership
from kgctl.pipelines.transforms.decode import GROUP, MALFORMED_VALUE, UNKNOWN_VALUE
from kgctl.pipelines.transforms.membership import Changes, Membership
from kgctl.pipelines.transforms.rebalance_rules import (
    Event,
    OpenRebalance,
    Rebalance,
    follow,
)
from kgctl.pipelines.transforms.stored_log import StoredLog
from kgctl.pipelines.transforms.times import LAST_MS

EVENT_VERSION = 1

_EVENT_DDL = (
    "version bigint, `group` string, event string, generation int, `timestamp` bigint, cause string, reason string, "
    "joined array<string>, `left` array<string>, members int, prepare_ms bigint, complete_ms bigint, "
    "partitions_moved int, commits_rejected bigint, group_type string, joined_count int, left_count int, "
    "left_causes array<string>, clients map<string, struct<client_id: string, host: string>>"
)
# REBALANCES with times as numbers: timestamps in a Python worker depend on its time zone.
_MADE_DDL = (
    "`group` string, generation int, started_ms bigint, ended_ms bigint, duration_ms bigint, duration_source string, "
    "cause string, reason string, joined array<string>, `left` array<string>, members int, moved_parts int, skew double, "
    "commits_rejected bigint, group_type string"
)
_MADE = Row(*Rebalance.__slots__)
_MEMBERSHIP_DDL = (
    "`group` string, generation int, at_ms bigint, event string, cause string, member_id string, instance_id string, "
    "client_id string, client_host string, members int, source string, group_type string"
)
_MEMBERSHIP = Row(*Membership.__slots__)
_FOLLOWED_DDL = f"rebalance struct<{_MADE_DDL}>, membership struct<{_MEMBERSHIP_DDL}>"
_FOLLOWED = Row("rebalance", "membership")


def rebalances(followed: DataFrame) -> DataFrame:
    """The rows of REBALANCES."""
    rows = followed.where("rebalance is not null").select("rebalance.*")
    times = {"started": f.timestamp_millis("started_ms"), "ended": f.timestamp_millis("ended_ms")}
    return rows.withColumns(times).select(*REBALANCES.column_names)


def memberships(followed: DataFrame) -> DataFrame:
    """The rows of MEMBERSHIPS."""
    rows = followed.where("membership is not null").select("membership.*")
    return rows.withColumn("at", f.timestamp_millis("at_ms")).select(*MEMBERSHIPS.column_names)


def from_events(raw: DataFrame) -> DataFrame:
    """What `rebalances` and `memberships` take, from the records of `__kgctl_group_events`, for batches and streams.

    `skew` is null, since events do not contain it. Records that are not events of version 1 are left out; see `quarantine`.
    """
    events = _events(raw).where(_reason().isNull() & f.col("value").isNotNull())
    return _followed(events.select("event.*", "log_partition", "log_offset"), FromEvents())


def quarantine(raw: DataFrame) -> DataFrame:
    """The rows of QUARANTINE: records of `__kgctl_group_events` that `from_events` leaves out."""
    rows = _events(raw).withColumn("reason", _reason()).where("reason is not null and value is not null")
    return rows.select(*QUARANTINE.column_names)


def from_log(decoded: DataFrame) -> DataFrame:
    """What `rebalances` and `memberships` take, from decoded records of `__consumer_offsets`, for batches and streams.

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
                yield _row(rebalance)
            yield from map(_row, membership.memberships(_changes(row)))
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
            yield from map(_row, () if record is None else log.add(record))
            yield from map(_row, log.memberships)
            log.memberships.clear()
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
    return rows.groupBy("group").transformWithState(processor, _FOLLOWED_DDL, "append", "none")


def _row(found: Rebalance | Membership) -> Row:
    if isinstance(found, Rebalance):
        return _FOLLOWED(_MADE(*astuple(found)), None)
    return _FOLLOWED(None, _MEMBERSHIP(*astuple(found)))


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


def _changes(row: Row) -> Changes:
    return Changes(
        group=row["group"],
        event=row["event"],
        generation=row["generation"],
        at_ms=row["timestamp"],
        joined=row["joined"] or (),
        left=row["left"] or (),
        left_causes=row["left_causes"] or (),
        joined_count=row["joined_count"],
        left_count=row["left_count"],
        # Spark hands a map to a processor as a list of its entries.
        clients={name: (client["client_id"], client["host"]) for name, client in dict(row["clients"] or ()).items()},
        group_type=row["group_type"],
    )
