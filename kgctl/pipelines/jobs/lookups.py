"""Questions that Spark tasks ask the cluster about many partitions and times: log ends, and when records were written."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kgctl.client.admin.admin import Admin
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt
from kgctl.client.admin.one_per_partition import one_per_partition
from kgctl.client.admin.record_times import times_or_errors
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.jobs.asking_again import PATIENCE, Patience, patiently
from kgctl.pipelines.schemas.groups import LOG_ENDS
from kgctl.pipelines.transforms.times import LAST_MS

CLIENT_ID = "kgctl-pipeline"
SAMPLED, BY_TIMESTAMP = "sampled", "by_timestamp"
_TIME = pa.timestamp("us", tz="UTC")
_ENDS = pa.schema(
    [
        ("topic", pa.string()),
        ("part", pa.int32()),
        ("at", _TIME),
        ("log_start", pa.int64()),
        ("log_end", pa.int64()),
        ("source", pa.string()),
    ]
)
BEHIND_DDL = "topic string, part int, offset bigint, behind_ts timestamp"
_BEHIND = pa.schema([("topic", pa.string()), ("part", pa.int32()), ("offset", pa.int64()), ("behind_ts", _TIME)])


@dataclass(frozen=True, slots=True)
class LogEndLookup:
    """Looks up log ends in a task. `now_ms` is the point that stands for the current ends."""

    connection: ConnectionSettings
    now_ms: int
    patience: Patience = PATIENCE

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        wanted: dict[TopicPartition, set[int]] = {}
        for batch in batches:
            for topic, part, at in zip(
                *(batch.column(name).to_pylist() for name in ("topic", "part", "at_ms")), strict=True
            ):
                wanted.setdefault(TopicPartition(topic, part), set()).add(at)
        if not wanted:
            return
        with Admin(self.connection) as admin:
            latest = self._offsets(admin, dict.fromkeys(wanted, LATEST))
            asked_ms = time.time_ns() // 1_000_000
            now = [one for one, times in wanted.items() if one in latest and max(times) >= self.now_ms]
            earliest = self._offsets(admin, dict.fromkeys(now, EARLIEST))
            for points in one_per_partition({one: wanted[one] for one in latest}):
                found = self._offsets(admin, points)
                yield self._batch(points, found, latest, earliest, asked_ms)

    def _offsets(self, admin: Admin, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAt]:
        return patiently(admin.list_offsets, wanted, self.patience)

    def _batch(
        self,
        points: Mapping[TopicPartition, int],
        found: Mapping[TopicPartition, OffsetAt],
        latest: Mapping[TopicPartition, OffsetAt],
        earliest: Mapping[TopicPartition, OffsetAt],
        asked_ms: int,
    ) -> pa.RecordBatch:
        rows = []
        for one, at_ms in sorted(points.items()):
            sampled = at_ms >= self.now_ms
            first = found.get(one)
            # No record is that new, so the log ended then where it ends now. For `now_ms` itself a record with a timestamp
            # in the future says nothing, and records written between `now_ms` and the request do not count.
            if first is None or first.offset < 0 or (sampled and first.timestamp > asked_ms):
                first = latest[one]
            start = earliest[one].offset if sampled and one in earliest else None
            rows.append((*one, 1000 * at_ms, start, first.offset, SAMPLED if sampled else BY_TIMESTAMP))
        return pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _ENDS, strict=True)],
            schema=_ENDS,
        )


def ends_at(points: DataFrame, lookup: LogEndLookup) -> DataFrame:
    """log_ends for rows of (topic, part, at_ms), without partitions that no longer exist. Raises KgctlError."""
    return points.select("topic", "part", "at_ms").mapInArrow(lookup, LOG_ENDS.ddl)


@dataclass(frozen=True, slots=True)
class FirstBehind:
    """Looks up in a task when the records at some offsets were written."""

    connection: ConnectionSettings
    patience: Patience = PATIENCE

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [row for batch in batches for row in batch.to_pylist()]
        if not rows:
            return
        with Admin(self.connection) as admin:
            found = patiently(
                lambda wanted: admin.run(times_or_errors(admin.cluster, list(wanted))),
                dict.fromkeys((row["topic"], row["part"], row["offset"]) for row in rows),
                self.patience,
            )
        times = {
            key: 1000 * time_ms for key, time_ms in sorted(found.items()) if time_ms is not None and time_ms <= LAST_MS
        }
        columns = [[key[place] for key in times] for place in range(3)]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(values, field.type)
                for values, field in zip([*columns, list(times.values())], _BEHIND, strict=True)
            ],
            schema=_BEHIND,
        )


def first_behind(offsets: DataFrame, lookup: FirstBehind) -> DataFrame:
    """(topic, part, offset, behind_ts) for rows of (topic, part, offset), without offsets that the log no longer has.

    Nor those of records whose time is outside the calendar.
    """
    return offsets.select("topic", "part", "offset").mapInArrow(lookup, BEHIND_DDL)


def points_of(partitions: DataFrame, at_ms: list[int], tasks: int) -> DataFrame:
    """Each partition with each point in time, distributed so that a task asks about whole points."""
    spark = partitions.sparkSession
    times = spark.createDataFrame([(at,) for at in at_ms], "at_ms bigint")
    return f.broadcast(times).crossJoin(partitions).repartition(max(1, min(tasks, len(at_ms))), "at_ms")
