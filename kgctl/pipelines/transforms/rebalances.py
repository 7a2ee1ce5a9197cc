"""Every rebalance of every group, from the events of kgctl's own broker or from the group metadata of any cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from kgctl.pipelines import schemas
from kgctl.pipelines.transforms.decode import LAST_MS, MALFORMED_VALUE, UNKNOWN_VALUE
from kgctl.pipelines.transforms.rebalance_story import (
    Event,
    Generation,
    Rebalance,
    Seat,
    Told,
    compare,
    follow,
    generation_from_json,
)

EVENT_VERSION = 1

_EVENT_DDL = (
    "version bigint, `group` string, event string, generation int, `timestamp` bigint, cause string, reason string, "
    "joined array<string>, `left` array<string>, members int, prepare_ms bigint, complete_ms bigint, "
    "partitions_moved int, commits_rejected bigint"
)
# schemas.REBALANCES with times as numbers: what a Python worker makes of timestamps depends on its time zone.
_MADE_DDL = (
    "`group` string, generation int, started_ms bigint, ended_ms bigint, duration_ms bigint, duration_source string, "
    "cause string, reason string, joined array<string>, `left` array<string>, members int, moved_parts int, skew double, "
    "commits_rejected bigint"
)
_MADE = Row(*Rebalance.__slots__)


def from_events(raw: DataFrame) -> DataFrame:
    """The rows of schemas.REBALANCES out of the records of `__kgctl_group_events`, a stream or not.

    `skew` is null: events do not tell it. What is no event, or is of a version above 1, is left out: see `quarantine`.
    """
    events = _events(raw).where(_reason().isNull() & f.col("value").isNotNull())
    return _followed(events.select("told.*", "log_partition", "log_offset"), FromEvents())


def quarantine(raw: DataFrame) -> DataFrame:
    """The rows of schemas.QUARANTINE: records of `__kgctl_group_events` that `from_events` leaves out."""
    rows = _events(raw).withColumn("reason", _reason()).where("reason is not null and value is not null")
    return rows.select(*schemas.QUARANTINE.column_names)


def from_metadata(group_events: DataFrame) -> DataFrame:
    """The rows of schemas.REBALANCES out of those of schemas.GROUP_EVENTS, a stream or not: classic groups only.

    Each generation is compared with the record before it. Of a group that is seen for the first time in a generation above 1,
    `joined`, `left` and `moved_parts` are null. A deleted group is forgotten.
    """
    seat = "transform(members, m -> struct(m.member_id, m.instance_id, m.assigned)) as seats"
    rows = group_events.where("kind = 'GroupMetadata'").selectExpr(
        "`group`", "generation", "tombstone", seat, "unix_millis(log_ts) as log_ms", "log_partition", "log_offset"
    )
    return _followed(rows, FromMetadata())


class FromEvents(StatefulProcessor):
    """Keyed by group; remembers when a rebalance began."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.told = handle.getValueState("told", "started_ms bigint, commits_rejected bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        told = Told(*self.told.get()) if self.told.exists() else Told()
        for row in _in_order(rows):
            told, rebalance = follow(told, _event(row))
            if rebalance is not None:
                yield _MADE(*astuple(rebalance))
        if told == Told():
            self.told.clear()
        else:
            self.told.update((told.started_ms, told.commits_rejected))

    def close(self) -> None:
        pass


class FromMetadata(StatefulProcessor):
    """Keyed by group; remembers its last record."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.before = handle.getValueState("before", "generation string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        before = generation_from_json(self.before.get()[0]) if self.before.exists() else None
        for row in _in_order(rows):
            if row["tombstone"]:
                before = None
                continue
            now = Generation(row["generation"], tuple(_seat(member) for member in row["seats"]))
            rebalance = compare(key[0], before, now, row["log_ms"])
            before = now
            if rebalance is not None:
                yield _MADE(*astuple(rebalance))
        if before is None:
            self.before.clear()
        else:
            self.before.update((before.to_json(),))

    def close(self) -> None:
        pass


def _events(raw: DataFrame) -> DataFrame:
    text = f.try_validate_utf8(f.col("value").cast("string"))
    columns = [column.name for column in schemas.RAW_COLUMNS]
    return raw.select(
        *columns,
        f.col("partition").alias("log_partition"),
        f.col("offset").alias("log_offset"),
        f.from_json(text, _EVENT_DDL).alias("told"),
    )


def _reason() -> Column:
    told = f.col("told")
    whole = (
        told["version"].isNotNull()
        & (told["version"] > 0)
        & told["group"].isNotNull()
        & told["event"].isNotNull()
        & told["generation"].isNotNull()
        & told["timestamp"].between(0, LAST_MS)
    )
    return f.when(told["version"] > EVENT_VERSION, UNKNOWN_VALUE).when(
        ~f.coalesce(whole, f.lit(False)), MALFORMED_VALUE
    )


def _followed(rows: DataFrame, processor: StatefulProcessor) -> DataFrame:
    made = rows.groupBy("group").transformWithState(processor, _MADE_DDL, "append", "none")
    times = {"started": f.timestamp_millis("started_ms"), "ended": f.timestamp_millis("ended_ms")}
    return made.withColumns(times).select(*schemas.REBALANCES.column_names)


def _in_order(rows: Iterator[Row]) -> list[Row]:
    """A batch has the rows of a group in any order."""
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
    )


def _seat(member: Mapping[str, Any]) -> Seat:
    """Structs within arrays come as dicts, which is not said anywhere."""
    assigned = member["assigned"]
    return Seat(
        member["member_id"],
        member["instance_id"],
        None if assigned is None else tuple((entry["topic"], tuple(entry["parts"])) for entry in assigned),
    )
