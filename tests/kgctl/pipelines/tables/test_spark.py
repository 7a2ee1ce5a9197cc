"""Rows go from Spark into a table's folder and back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet
import pytest

from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.groups import LOG_ENDS
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.pipelines.tables.spark import Written, read_table, write_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATE, EARLY = datetime(2024, 1, 1, 23, 59, 59, 999000, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)


def ends(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), LOG_ENDS.ddl)


def two_days(spark: SparkSession) -> DataFrame:
    return ends(spark, ("t", 0, LATE, 0, 10, "sampled"), ("t", 0, EARLY, None, 11, "sampled"))


def written(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob("**/*.parquet"))


def test_rows_come_back_as_they_were_from_folders_by_utc_day(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "out" / "log_ends"
    assert write_batch(two_days(spark), folder, "lag-1", LOG_ENDS, {"until": 5}) == Written(2, 2, new=True)
    assert written(folder) == ["date=2024-01-01/lag-1-0.parquet", "date=2024-01-02/lag-1-1.parquet"]
    back = read_table(spark, folder, LOG_ENDS)
    assert back.columns == list(LOG_ENDS.column_names)
    assert sorted(back.collect()) == sorted(two_days(spark).collect())
    assert TableFolder(folder).state().notes == {"until": 5}


def test_days_are_in_utc_in_a_session_with_another_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    rows = two_days(spark)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    try:
        write_batch(rows, tmp_path / "log_ends", "lag-1", LOG_ENDS)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert [path.split("/")[0] for path in written(tmp_path / "log_ends")] == ["date=2024-01-01", "date=2024-01-02"]


def test_a_repeated_batch_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write_batch(two_days(spark), tmp_path / "log_ends", "lag-1", LOG_ENDS)
    other = ends(spark, ("other", 0, LATE, 0, 10, "sampled"))
    assert write_batch(other, tmp_path / "log_ends", "lag-1", LOG_ENDS) == Written(0, 0, new=False)
    assert write_batch(other, tmp_path / "log_ends", "lag-2", LOG_ENDS) == Written(1, 1, new=True)
    assert read_table(spark, tmp_path / "log_ends", LOG_ENDS).count() == 3


def test_a_table_without_rows_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    assert write_batch(ends(spark), tmp_path / "log_ends", "lag-1", LOG_ENDS) == Written(0, 0, new=True)
    assert TableFolder(tmp_path / "log_ends").state().committed == 0
    empty = read_table(spark, tmp_path / "log_ends", LOG_ENDS)
    assert (empty.columns, empty.count()) == (list(LOG_ENDS.column_names), 0)


def test_a_failed_write_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    failing = two_days(spark).withColumn("part", F.expr("if(log_end = 11, raise_error('no'), 0)"))
    with pytest.raises(PySparkException):
        write_batch(failing, tmp_path / "log_ends", "lag-1", LOG_ENDS)
    assert written(tmp_path / "log_ends") == []
    assert write_batch(two_days(spark), tmp_path / "log_ends", "lag-1", LOG_ENDS).rows == 2
    assert list((tmp_path / "_staging" / "log_ends").iterdir()) == []


def test_other_readers_see_times_as_instants(spark: SparkSession, tmp_path: Path) -> None:
    write_batch(two_days(spark), tmp_path / "log_ends", "lag-1", LOG_ENDS)
    schema = pyarrow.parquet.read_schema(TableFolder(tmp_path / "log_ends").files()[0])
    assert str(schema.field("at").type) == "timestamp[us, tz=UTC]"
    with duckdb.connect() as connection:
        glob = f"{tmp_path}/log_ends/**/*.parquet"
        assert connection.execute('select epoch_ms(max("at")), count(*) from read_parquet(?)', [glob]).fetchone() == (
            int(EARLY.timestamp() * 1000),
            2,
        )


def test_every_table_is_written_and_read_back(spark: SparkSession, tmp_path: Path) -> None:
    for table in TABLES.values():
        nulls = ", ".join(f"cast(null as {column.type}) as `{column.name}`" for column in table.columns)
        write_batch(spark.sql(f"select {nulls}"), tmp_path / table.name, "one", table)
        assert [set(row) for row in read_table(spark, tmp_path / table.name, table).collect()] == [{None}]
        assert written(tmp_path / table.name) == ["date=1970-01-01/one-0.parquet"]


def test_files_are_listed_without_a_task_for_each(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        write_batch(two_days(spark), tmp_path / "log_ends", f"lag-{number}", LOG_ENDS)
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", "2")
    before = jobs_so_far(spark)
    frame = read_table(spark, tmp_path / "log_ends", LOG_ENDS)
    assert jobs_so_far(spark) == before
    assert frame.count() == 4


def jobs_so_far(spark: SparkSession) -> int:
    every_status = spark._jvm.java.util.ArrayList()
    return spark.sparkContext._jsc.sc().statusStore().jobsList(every_status).size()
