"""Reads whole logs in Spark tasks and returns what compaction looks at: keys, sizes and times, but no values.

A task turns record batches into rows without an object per record. Sizes are those of the log: a record counts with its
share of its compressed batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from broker.protocol.record_batch import BatchHeader
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source.options import SPARK_FETCH
from kgctl.pipelines.source.ranges import OffsetRange
from kgctl.pipelines.source.reading import ReadTask, read_range
from kgctl.pipelines.source.record_columns import record_batches
from kgctl.pipelines.transforms.compaction import CHUNK, RECORD, SCAN_DDL

_RANGES_DDL = "topic string, part int, start bigint, `end` bigint"
_SCAN = pa.schema(
    [
        ("topic", pa.string()),
        ("part", pa.int32()),
        ("kind", pa.int8()),
        ("key", pa.binary()),
        ("offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("ts_ms", pa.int64()),
        ("bytes", pa.float64()),
        ("is_tombstone", pa.bool_()),
        ("horizon_ms", pa.int64()),
        ("aborted", pa.int64()),
        ("aborted_bytes", pa.float64()),
        ("control", pa.int64()),
    ]
)
_MOST_TASKS = 256
# Batches are counted together up to this size.
_CHUNK_BYTES = 16 << 10
# A record is its key and value, two lengths, two deltas, attributes and a header count.
_RECORD_OVERHEAD = 7


@dataclass(frozen=True, slots=True)
class LogScan:
    """Reads ranges of (topic, part, start, end), all below the last stable offset; records that are gone meanwhile are skipped."""

    connection: ConnectionSettings
    fetch: FetchOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in (row for batch in batches for row in batch.to_pylist()):
            wanted = OffsetRange(TopicPartition(row["topic"], row["part"]), row["start"], row["end"])
            for fetched in read_range(ReadTask(self.connection, wanted, self.fetch, fail_on_data_loss=False)):
                yield from _rows(fetched)


def scan(spark: SparkSession, connection: ConnectionSettings, ranges: list[OffsetRange]) -> DataFrame:
    """Rows of SCAN_DDL: one per record without control records and aborted ones, and one per part of the log that was read."""
    committed = FetchOptions(
        max_wait_ms=SPARK_FETCH.max_wait_ms,
        max_bytes=SPARK_FETCH.max_bytes,
        max_partition_bytes=SPARK_FETCH.max_partition_bytes,
        committed_only=True,
    )
    rows = [(*one.partition, one.start, one.end) for one in ranges]
    frame = spark.createDataFrame(rows, _RANGES_DDL).repartition(max(1, min(_MOST_TASKS, len(rows))))
    return frame.mapInArrow(LogScan(connection, committed), SCAN_DDL)


def _rows(fetched: Fetched) -> Iterator[pa.RecordBatch]:
    batches = [
        (header, is_wanted)
        for _, header, is_wanted, _ in fetched.checked_payloads()
        if header.next_offset > fetched.offset
    ]
    if not batches:
        return
    yield _chunks(fetched, batches)
    wanted = [header for header, is_wanted in batches if is_wanted and header.record_count]
    for records in record_batches(fetched):
        yield _records(fetched.partition, records, wanted)


def _chunks(fetched: Fetched, batches: list[tuple[BatchHeader, bool]]) -> pa.RecordBatch:
    """A row for every _CHUNK_BYTES of batches."""
    rows: list[dict[str, Any]] = []
    for header, is_wanted in batches:
        if not rows or rows[-1]["bytes"] >= _CHUNK_BYTES:
            first = max(header.base_offset, fetched.offset)
            rows.append(
                {
                    "topic": fetched.partition.topic,
                    "part": fetched.partition.partition,
                    "kind": CHUNK,
                    "key": first.to_bytes(8, "big"),
                    "offset": first,
                    "bytes": 0.0,
                    "aborted": 0,
                    "aborted_bytes": 0.0,
                    "control": 0,
                }
            )
        row = rows[-1]
        row["last_offset"] = header.last_offset
        row["bytes"] += header.size_bytes
        if header.is_control:
            row["control"] += header.record_count
        elif not is_wanted:
            row["aborted"] += header.record_count
            row["aborted_bytes"] += header.size_bytes
    return pa.RecordBatch.from_pylist(rows, schema=_SCAN)


def _records(partition: TopicPartition, records: pa.RecordBatch, batches: list[BatchHeader]) -> pa.RecordBatch:
    """The rows of records that come from these batches, which are in the order of their offsets."""
    count = records.num_rows
    offsets = records.column("offset").to_numpy()
    key, value = records.column("key"), records.column("value")
    weights = _RECORD_OVERHEAD + _lengths(key) + _lengths(value)
    of = np.searchsorted(np.array([one.base_offset for one in batches]), offsets, side="right") - 1
    # If not all records of a batch are here, those that are count with their share of it.
    here = np.bincount(of, minlength=len(batches)) / np.array([one.record_count for one in batches])
    totals = np.bincount(of, weights=weights, minlength=len(batches))
    sizes = here * np.array([one.size_bytes for one in batches])
    horizons = np.array([-1 if one.delete_horizon_ms is None else one.delete_horizon_ms for one in batches], np.int64)
    stored = weights * (sizes / np.maximum(totals, 1))[of]
    horizon = horizons[of]
    nothing = pa.nulls(count, pa.int64())
    columns = [
        pa.repeat(pa.scalar(partition.topic, pa.string()), count),
        pa.repeat(pa.scalar(partition.partition, pa.int32()), count),
        pa.repeat(pa.scalar(RECORD, pa.int8()), count),
        key,
        records.column("offset"),
        records.column("offset"),
        pc.divide(records.column("timestamp").cast(pa.int64()), 1000),
        pa.array(stored),
        value.is_null(),
        pa.array(horizon, mask=horizon < 0),
        nothing,
        pa.nulls(count, pa.float64()),
        nothing,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCAN)


def _lengths(binary: pa.Array) -> np.ndarray:
    """Bytes of each element; 0 for null."""
    found: np.ndarray = pc.fill_null(pc.binary_length(binary), 0).to_numpy(zero_copy_only=False)
    return found
