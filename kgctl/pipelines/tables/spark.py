"""Reads and writes tables with Spark: its Parquet writer fills the staging folder, the manifest commits the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kgctl.pipelines.schemas.model import Stored, Table
from kgctl.pipelines.tables.arrow import check_version
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.manifest import Note, StagedFile

# A merge in the same run holds the lock for less than a second.
LOCK_WAIT_S = 60.0
# Above this number of files Spark starts a job with a task per file, only to list them.
_LISTED_IN_PLACE = "1000000"


@dataclass(frozen=True, slots=True)
class Written:
    """The rows and files that were written. `new` is False if the batch was committed before: then none."""

    rows: int
    files: int
    new: bool


def write_batch(
    rows: DataFrame,
    folder: Path,
    batch_id: str,
    table: Table,
    notes: Mapping[str, Note] | None = None,
    origin: Mapping[str, Note] | None = None,
) -> Written:
    """Write all rows or none. A batch that is committed already is computed but not written. Raises Busy, Damaged.

    A batch without rows and notes leaves no trace; `origin` are the notes of a batch that leaves one. Driver and executors
    must share the folder.
    """
    place = open_table(folder)
    with place.writing(LOCK_WAIT_S) as writer:
        if place.state().knows(batch_id):
            # A stateful query that repeats a batch must reach the state after it, or Spark fails the query.
            rows.write.format("noop").mode("overwrite").save()
            return Written(0, 0, new=False)
        staging = writer.stage(batch_id)
        try:
            _write(rows, staging, table)
            files = _staged(staging)
            if not files and not notes:
                writer.discard(staging)
                return Written(0, 0, new=True)
            writer.commit(batch_id, staging, files, {**(origin or {}), **(notes or {})}, schema=table.version)
        except BaseException:
            # A disk that is full should not stay so.
            if not place.state().knows(batch_id):
                writer.discard(staging)
            raise
        return Written(sum(file.rows for file in files), len(files), new=True)


def read_table(spark: SparkSession, folder: Path, table: Table) -> DataFrame:
    """The committed rows, with the columns of today; empty if there are none yet. Raises Damaged, Newer."""
    paths: dict[int, list[str]] = {}
    for path, file in open_table(folder).located():
        check_version(folder, table, file.schema)
        paths.setdefault(file.schema, []).append(str(path))
    if not paths:
        return spark.createDataFrame([], table.ddl)
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", _LISTED_IN_PLACE)
    parts = [_read(spark, paths[version], table.stored_as(version)) for version in sorted(paths)]
    return reduce(DataFrame.unionByName, parts)


def _read(spark: SparkSession, paths: Sequence[str], stored: Sequence[Stored]) -> DataFrame:
    """Spark gives null for a column of the schema that a file lacks."""
    ddl = ", ".join(f"`{one.name}` {one.type}" for one in stored)
    columns = [F.col(f"`{one.name}`").cast(one.column.type).alias(one.column.name) for one in stored]
    return spark.read.schema(ddl).parquet(*paths).select(*columns)


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
