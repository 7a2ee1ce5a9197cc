"""Reads and writes tables with Spark: its Parquet writer fills the staging folder, the manifest commits the batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.manifest import Note, StagedFile, TableFolder

# Above this number of files Spark starts a job with a task per file, only to list them.
_LISTED_IN_PLACE = "1000000"


@dataclass(frozen=True, slots=True)
class Written:
    """The rows and files of a batch. `new` is False if the batch was committed before; then nothing was written."""

    rows: int
    files: int
    new: bool


def write_batch(
    rows: DataFrame, folder: Path, batch_id: str, table: Table, notes: Mapping[str, Note] | None = None
) -> Written:
    """Write all rows or none. A batch that is committed already is computed but not written. Raises Busy, Damaged.

    A batch without rows and notes leaves no trace. Driver and executors must share the folder.
    """
    place = TableFolder(folder)
    with place.writing() as writer:
        before = place.batch(batch_id)
        if before is not None:
            # A stateful query that repeats a batch must reach the state after it, or Spark fails the query.
            rows.write.format("noop").mode("overwrite").save()
            return Written(before.rows, len(before.files), new=False)
        staging = writer.stage(batch_id)
        _write(rows, staging, table)
        files = _staged(staging)
        if not files and not notes:
            writer.discard(staging)
            return Written(0, 0, new=True)
        writer.commit(batch_id, staging, files, notes)
        return Written(sum(file.rows for file in files), len(files), new=True)


def read_table(spark: SparkSession, folder: Path, table: Table) -> DataFrame:
    """The committed rows; empty if there are none yet. Raises Damaged."""
    files = TableFolder(folder).files()
    if not files:
        return spark.createDataFrame([], table.ddl)
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", _LISTED_IN_PLACE)
    return spark.read.schema(table.ddl).parquet(*map(str, files))


def _write(rows: DataFrame, staging: Path, table: Table) -> None:
    spark = rows.sparkSession
    # The older INT96 has no statistics, and other readers take it for a time without a zone.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    # The UTC day, whatever the time zone of the session.
    day = F.expr(f"date_from_unix_date(cast(coalesce(floor(unix_seconds(`{table.day_of}`) / 86400), 0) as int))")
    (
        rows.select(*[F.col(f"`{column.name}`").cast(column.type) for column in table.columns], day.alias("date"))
        .coalesce(_cores(spark))
        .write.partitionBy("date")
        .option("compression", "zstd")
        .parquet(str(staging))
    )


def _cores(spark: SparkSession) -> int:
    """The number of files per batch and day: not one per partition. A Connect session does not know its cores."""
    context = getattr(spark, "sparkContext", None)
    return int(context.defaultParallelism) if context is not None else 8


def _staged(staging: Path) -> list[StagedFile]:
    found = []
    for path in sorted(staging.glob("date=*/*.parquet")):
        count = parquet.read_metadata(path).num_rows
        if count:
            found.append(StagedFile(str(path.relative_to(staging)), count))
    return found
