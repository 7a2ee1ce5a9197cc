"""Makes the class-data archive: a JVM runs a sample of what pipelines do and saves the loaded classes when it ends."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark.fast_start import VARIABLE, attempts
from kgctl.pipelines.spark.fast_start.cache import writable_cache_dir
from kgctl.pipelines.spark.fast_start.class_archive import SWITCH, keep, making_flag
from kgctl.pipelines.spark.java import find_java
from kgctl.pipelines.spark.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

# The JVM writes 200 MB when it ends; newer Javas start a second JVM that links them.
_END_TIMEOUT_S = 300.0


def make() -> Path | None:
    """The archive for the Java that sessions use; None if it cannot be made."""
    cache = writable_cache_dir()
    if cache is None:
        return None
    java = find_java()
    os.environ |= {SWITCH: "off", VARIABLE: "1"}
    # The archive is for the class path without additions.
    os.environ.pop("SPARK_CONF_DIR", None)
    with tempfile.TemporaryDirectory(prefix=attempts.FOLDER_PREFIX, dir=cache, ignore_cleanup_errors=True) as folder:
        raw = Path(folder) / "classes"
        settings = RunSettings(
            jobs=(),
            bootstrap="",
            out=folder,
            master="local[2]",
            quick=True,
            conf=(("spark.driver.extraJavaOptions", making_flag(java, raw)), ("spark.sql.shuffle.partitions", "1")),
        )
        with open_session(settings, app_name="class archive", end_timeout_s=_END_TIMEOUT_S) as spark:
            _exercise(spark, Path(folder))
        return keep(raw, cache, java)


def _exercise(spark: SparkSession, folder: Path) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    rows = spark.range(200).select(
        F.col("id"),
        (F.col("id") % 3).cast("string").alias("key"),
        F.timestamp_seconds("id").alias("at"),
        F.array(F.struct("id")).alias("list"),
    )
    table = str(folder / "table")
    rows.withColumn("date", F.to_date("at")).write.partitionBy("date").parquet(table)
    spark.read.parquet(table).where("id > 5").groupBy("key").agg(F.max("at"), F.count("*")).orderBy("key").collect()
    by_key = Window.partitionBy("key").orderBy("id")
    rows.withColumn("before", F.lag("id").over(by_key)).join(rows.select("id"), "id").mapInArrow(
        _pass_on, rows.schema
    ).count()
    query = spark.readStream.schema(spark.read.parquet(table).schema).parquet(table)
    started = (
        query.groupBy("key")
        .count()
        .writeStream.outputMode("complete")
        .foreachBatch(_collect)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    started.awaitTermination()


def _pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.select(["id", "key", "at", "list"])


def _collect(rows: DataFrame, _batch: int) -> None:
    rows.collect()


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        os.nice(10)
    make()
