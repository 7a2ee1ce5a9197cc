"""A table's rows out of Spark and into it: Spark's own Parquet writer fills the staging folder, the manifest commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kgctl.pipelines.schemas import Table
from kgctl.pipelines.tables.manifest import Note, StagedFile, TableFolder

# Above this many files Spark would start a job with a task for each, only to look at them.
_LISTED_IN_PLACE = "1000000"


@dataclass(frozen=True, slots=True)
class Written:
    """What a batch has in the table now. `new`: False if it was there before; then nothing was written."""

    rows: int
    files: int
    new: bool


def write_batch(
    rows: DataFrame, folder: Path, batch_id: str, table: Table, notes: Mapping[str, Note] | None = None
) -> Written:
    """All rows, or none. A batch id that is committed already is computed, but not written again. Raises Busy, Damaged.

    A batch without rows and notes leaves no trace. The folder is a path that driver and executors share.
    """
    place = TableFolder(folder)
    with place.writing() as writer:
        before = place.batch(batch_id)
        if before is not None:
            # A stateful query that repeats a batch must come to the state behind it, or Spark ends it.
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
    """What is committed now, in the table's columns; empty if there is nothing yet. Raises Damaged."""
    files = TableFolder(folder).files()
    if not files:
        return spark.createDataFrame([], table.ddl)
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", _LISTED_IN_PLACE)
    return spark.read.schema(table.ddl).parquet(*map(str, files))


def _write(rows: DataFrame, staging: Path, table: Table) -> None:
    spark = rows.sparkSession
    # The older form, INT96, has no statistics, and others read it as a time without zone.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    # In UTC, whatever the time zone of the session.
    day = F.expr(f"date_from_unix_date(cast(coalesce(floor(unix_seconds(`{table.day_of}`) / 86400), 0) as int))")
    (
        rows.select(*[F.col(f"`{column.name}`").cast(column.type) for column in table.columns], day.alias("date"))
        .coalesce(_cores(spark))
        .write.partitionBy("date")
        .option("compression", "zstd")
        .parquet(str(staging))
    )


def _cores(spark: SparkSession) -> int:
    """So that a batch of few rows from many partitions does not become a file for each. A session by Connect cannot tell."""
    context = getattr(spark, "sparkContext", None)
    return int(context.defaultParallelism) if context is not None else 8


def _staged(staging: Path) -> list[StagedFile]:
    found = []
    for path in sorted(staging.glob("date=*/*.parquet")):
        count = parquet.read_metadata(path).num_rows
        if count:
            found.append(StagedFile(str(path.relative_to(staging)), count))
    return found
