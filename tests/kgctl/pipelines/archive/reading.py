"""The records of an archive as rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.files import read_records
from kgctl.pipelines.archive.manifest import Archive
from tests.kgctl.pipelines.archive.making import Row


def rows_of(archive: Archive, partition: TopicPartition, start: int | None = None, end: int | None = None) -> list[Row]:
    return [
        Row(
            row["offset"],
            row["key"],
            row["value"],
            row["timestamp"] // 1000,
            tuple((one["key"], one["value"]) for one in row["headers"] or ()),
            row["timestampType"],
        )
        for batch in read_records(archive, partition, start, end)
        for row in _as_dicts(batch)
    ]


def in_folder(folder: Path) -> list[tuple[str, int, int]]:
    """Topic, partition and offset of each record, as programs see them that read all files in the folder, sorted."""
    return sorted(
        (path.parts[-3].removeprefix("topic="), row["partition"], row["offset"])
        for path in (folder / "records").rglob("*.parquet")
        for row in parquet.ParquetFile(path).read(["partition", "offset"]).to_pylist()
    )


def _as_dicts(batch: Any) -> list[dict[str, Any]]:
    """With timestamps in microseconds: some have no datetime."""
    at = batch.schema.get_field_index("timestamp")
    rows: list[dict[str, Any]] = batch.set_column(at, "timestamp", batch.column(at).cast("int64")).to_pylist()
    return rows
