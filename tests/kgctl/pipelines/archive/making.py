"""Writes small archives without Spark and without a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.files import write_files
from kgctl.pipelines.archive.layout import Addition, ArchivedFile, Hole, ReadRange, TopicFacts
from kgctl.pipelines.archive.manifest import writing
from kgctl.pipelines.source.record_columns import RAW_SCHEMA_WITH_HEADERS

CLUSTER = "cluster-of-tests"
# 2026-01-31 12:00 UTC
NOON_MS = 1_769_860_800_000


@dataclass(frozen=True)
class Row:
    """A record; `timestamp_type` is 0 for create time and 1 for log append time."""

    offset: int
    key: bytes | None = None
    value: bytes | None = b"value"
    timestamp_ms: int = NOON_MS
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_type: int = 0


def facts(name: str, partitions: int = 1, **changes: Any) -> TopicFacts:
    return TopicFacts(name, **{"id": f"id-of-{name}", "partitions": partitions, "replication_factor": 1, **changes})


def add(
    folder: Path,
    rows: Mapping[TopicPartition, Sequence[Row]],
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    topics: Iterable[TopicFacts] = (),
    holes: Iterable[Hole] = (),
    cluster_id: str = CLUSTER,
    isolation_level: str = "read_committed",
) -> Addition:
    """One commit of an archive: rows per partition, and the range of offsets that was read."""

    def write(staging: Path) -> list[ArchivedFile]:
        return write_files(
            (raw(partition, some[at : at + 10]) for partition, some in rows.items() for at in range(0, len(some), 10)),
            staging,
        )

    def complete(_: Sequence[ArchivedFile]) -> Addition:
        read = [
            ReadRange(*partition, start, end, sum(1 for row in rows.get(partition, ()) if start <= row.offset < end))
            for partition, (start, end) in ranges.items()
        ]
        return Addition(cluster_id, isolation_level, tuple(topics), tuple(read), tuple(holes))

    with writing(folder) as writer:
        return writer.commit(write, complete)


def raw(partition: TopicPartition, rows: Sequence[Row]) -> pa.RecordBatch:
    """The rows as a source reads them."""
    columns: list[list[Any]] = [
        [row.key for row in rows],
        [row.value for row in rows],
        [partition.topic] * len(rows),
        [partition.partition] * len(rows),
        [row.offset for row in rows],
        [1000 * row.timestamp_ms for row in rows],
        [row.timestamp_type for row in rows],
        [[{"key": key, "value": value} for key, value in row.headers] or None for row in rows],
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, RAW_SCHEMA_WITH_HEADERS, strict=True)],
        schema=RAW_SCHEMA_WITH_HEADERS,
    )
