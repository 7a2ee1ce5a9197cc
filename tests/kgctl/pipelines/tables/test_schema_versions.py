"""Files of older versions of a table are read with the columns of today; newer ones are refused."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.ddl import Array, Struct, parse
from kgctl.pipelines.schemas.groups import LAG, REBALANCES
from kgctl.pipelines.schemas.model import Change, Column, Table
from kgctl.pipelines.tables.arrow import arrow_schema, read_file
from kgctl.pipelines.tables.manifest import Newer, StagedFile, TableFolder
from kgctl.pipelines.tables.merge_plans import all_small
from kgctl.pipelines.tables.merging import merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT_1 = Path(__file__).parent / "format_1"
DAY = "date=2024-01-01"
FIRST = Table("t", "", (Column("id", "int", ""), Column("size", "int", "")), day_of="id")
SECOND = Table(
    "t",
    "",
    (Column("id", "int", ""), Column("bytes", "int", ""), Column("note", "string", "")),
    day_of="id",
    version=2,
    changes=(Change(2, "bytes", was="size"),),
)
THIRD = Table(
    "t",
    "",
    (Column("id", "bigint", ""), Column("bytes", "bigint", ""), Column("note", "string", "")),
    day_of="id",
    version=3,
    changes=(
        Change(2, "bytes", was="size"),
        Change(3, "bytes", type_was="int"),
        Change(3, "id", type_was="int"),
    ),
)
ROWS = [
    {"id": 1, "bytes": 10, "note": None},
    {"id": 2, "bytes": 20, "note": "two"},
    {"id": 3, "bytes": 3 * 10**9, "note": "three"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file of each version."""
    values: list[dict[str, Any]] = [{"id": 1, "size": 10}, ROWS[1], ROWS[2]]
    table = TableFolder(tmp_path / "out" / "t")
    for version, row in zip((FIRST, SECOND, THIRD), values, strict=True):
        with table.writing() as writer:
            staging = writer.stage(f"job-{version.version}")
            (staging / DAY).mkdir(parents=True)
            pa.parquet.write_table(pa.Table.from_pylist([row], arrow_schema(version)), staging / DAY / "a.parquet")
            writer.commit(
                staging.name.rpartition("-")[0], staging, [StagedFile(f"{DAY}/a.parquet", 1)], schema=version.version
            )
    return table.folder


def read(folder: Path, table: Table) -> list[dict[str, Any]]:
    found = [
        row for path, file in TableFolder(folder).located() for row in read_file(path, table, file.schema).to_pylist()
    ]
    return sorted(found, key=lambda row: row["id"])


def test_renamed_and_retyped_columns_follow_their_rules_and_new_ones_are_null(folder: Path) -> None:
    assert read(folder, THIRD) == ROWS
    merge(folder, THIRD, all_small, 0)
    (file,) = TableFolder(folder).state().files
    assert file.schema == 3
    assert read(folder, THIRD) == ROWS


def test_a_newer_version_is_refused_in_one_line(folder: Path) -> None:
    with pytest.raises(Newer, match=r"t: a newer kgctl wrote this table \(schema version 3; this one reads up to 2\)"):
        read(folder, SECOND)
    with pytest.raises(Newer, match="update kgctl"):
        merge(folder, SECOND, all_small, 0)
    assert len(TableFolder(folder).files()) == 3


def test_spark_reads_all_versions(folder: Path, spark: SparkSession) -> None:
    from kgctl.pipelines.tables.spark import read_table

    assert (
        sorted((row.asDict() for row in read_table(spark, folder, THIRD).collect()), key=lambda row: row["id"]) == ROWS
    )
    with pytest.raises(Newer):
        read_table(spark, folder, SECOND)


def test_tables_of_the_format_before_are_read_continued_and_merged(tmp_path: Path) -> None:
    """tests/.../format_1 was written by the release that had a manifest per batch and no schema versions."""
    out = tmp_path / "out"
    shutil.copytree(FORMAT_1, out)
    lag, rebalances = TableFolder(out / LAG.name), TableFolder(out / REBALANCES.name)
    newest = int(datetime(2024, 1, 3, 12, tzinfo=UTC).timestamp() * 1000)
    assert (lag.state().committed, lag.rows(), lag.state().notes) == (3, 6, {"last_point_ms": newest})
    rows = [row for path, file in rebalances.located() for row in read_file(path, REBALANCES, file.schema).to_pylist()]
    assert [(row["generation"], row["group_type"]) for row in rows] == [(1, None), (2, None)]
    with lag.writing() as writer:
        writer.fold()
        staging = writer.stage(f"lag-{newest}")
        staging.mkdir()
        assert not writer.commit(f"lag-{newest}", staging, [])
    merge(rebalances.folder, REBALANCES, all_small, 0)
    assert (lag.rows(), lag.state().notes, rebalances.state().committed) == (6, {"last_point_ms": newest}, 2)
    assert by_duckdb_count(lag.folder) == 6


def by_duckdb_count(folder: Path) -> int:
    import duckdb

    with duckdb.connect() as connection:
        found = connection.execute(f"select count(*) from read_parquet('{folder}/**/*.parquet')").fetchone()
    assert found is not None
    return int(found[0])


def test_an_older_kgctl_refuses_what_this_one_writes(folder: Path) -> None:
    """It reads every .json file beside the lock, and refuses a higher version than its own, 1."""
    for path in (folder / "_manifest").glob("*.json"):
        assert json.loads(path.read_text())["version"] > 1


def test_every_table_of_the_catalog_has_arrow_types_and_valid_changes() -> None:
    for table in TABLES.values():
        assert arrow_schema(table).names == list(table.column_names)
        assert all(1 < change.version <= table.version for change in table.changes)
        assert {one.column.name for one in table.stored_as(1)} == set(table.column_names)


def test_types_are_parsed() -> None:
    assert parse("array<struct<a: string, `b`: array<int>>>") == Array(Struct((("a", "string"), ("b", Array("int")))))
    for wrong in ("", "array<int", "array<int>>", "list<int>", "struct<a>", "a b"):
        with pytest.raises((ValueError, IndexError)):
            parse(wrong)
