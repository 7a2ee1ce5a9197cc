"""What tasks ask the cluster about many partitions and times: where logs ended, when records were written."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kgctl.client.admin.admin import Admin
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt
from kgctl.client.admin.record_times import record_times
from kgctl.client.net.bootstrap import resolve
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.rounds import rounds
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.schemas import LOG_ENDS

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
class Ends:
    """Looks up log ends in a task. `now_ms` is the point at which the ends of now are told."""

    bootstrap: str
    now_ms: int
    timeout_s: float

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        wanted: dict[TopicPartition, set[int]] = {}
        for batch in batches:
            for topic, part, at in zip(
                *(batch.column(name).to_pylist() for name in ("topic", "part", "at_ms")), strict=True
            ):
                wanted.setdefault(TopicPartition(topic, part), set()).add(at)
        if not wanted:
            return
        with Admin(ConnectionSettings(resolve(self.bootstrap), "kgctl-pipeline", self.timeout_s)) as admin:
            latest = _offsets(admin, dict.fromkeys(wanted, LATEST))
            asked_ms = time.time_ns() // 1_000_000
            now = [one for one, times in wanted.items() if one in latest and max(times) >= self.now_ms]
            earliest = _offsets(admin, dict.fromkeys(now, EARLIEST))
            for points in rounds({one: wanted[one] for one in latest}):
                found = _offsets(admin, points)
                yield self._ends_batch(points, found, latest, earliest, asked_ms)

    def _ends_batch(
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
            # No record is that new, so the log ended then where it ends now. For now itself a record whose time has not come
            # yet says nothing; what was written between now and the asking does not count.
            if first is None or first.offset < 0 or (sampled and first.timestamp > asked_ms):
                first = latest[one]
            start = earliest[one].offset if sampled and one in earliest else None
            rows.append((*one, 1000 * at_ms, start, first.offset, SAMPLED if sampled else BY_TIMESTAMP))
        return pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _ENDS, strict=True)],
            schema=_ENDS,
        )


def ends_at(points: DataFrame, ends: Ends) -> DataFrame:
    """log_ends for rows of (topic, part, at_ms). Partitions that are gone are left out; KgctlError where nobody answers."""
    return points.select("topic", "part", "at_ms").mapInArrow(ends, LOG_ENDS.ddl)


@dataclass(frozen=True, slots=True)
class FirstBehind:
    """Looks up in a task when the record at an offset was written."""

    bootstrap: str
    timeout_s: float

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [row for batch in batches for row in batch.to_pylist()]
        if not rows:
            return
        with Admin(ConnectionSettings(resolve(self.bootstrap), "kgctl-pipeline", self.timeout_s)) as admin:
            wanted = [(row["topic"], row["part"], row["offset"]) for row in rows]
            found = admin.run(record_times(admin.cluster, wanted))
        times = {key: 1000 * time_ms for key, time_ms in sorted(found.items()) if time_ms is not None}
        columns = [[key[place] for key in times] for place in range(3)]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(values, field.type)
                for values, field in zip([*columns, list(times.values())], _BEHIND, strict=True)
            ],
            schema=_BEHIND,
        )


def first_behind(offsets: DataFrame, look: FirstBehind) -> DataFrame:
    """(topic, part, offset, behind_ts) for rows of (topic, part, offset); those that the log has no more are left out."""
    return offsets.select("topic", "part", "offset").mapInArrow(look, BEHIND_DDL)


def points_of(partitions: DataFrame, at_ms: list[int], tasks: int) -> DataFrame:
    """Each partition with each point in time, so spread that a task asks about whole points."""
    spark = partitions.sparkSession
    times = spark.createDataFrame([(at,) for at in at_ms], "at_ms bigint")
    return f.broadcast(times).crossJoin(partitions).repartition(max(1, min(tasks, len(at_ms))), "at_ms")


def _offsets(admin: Admin, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAt]:
    """Errors of single partitions mean that they are gone; if no partition answers, the first error stands for all."""
    if not wanted:
        return {}
    found = admin.list_offsets(wanted)
    errors = [result for result in found.values() if isinstance(result, KgctlError)]
    if len(errors) == len(found) and any(error.retriable for error in errors):
        raise next(error for error in errors if error.retriable)
    return {partition: result for partition, result in found.items() if isinstance(result, OffsetAt)}
