"""Reads a table of one column through the manifest, and through other programs' readers of folders."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from kgctl.pipelines.tables.manifest import TableFolder


def write_parquet(path: Path, rows: list[str]) -> Path:
    pa.parquet.write_table(pa.table({"a": rows}), path)
    return path


def by_manifest(folder: Path) -> list[str]:
    return sorted(row for file in TableFolder(folder).files() for row in pa.parquet.read_table(file)["a"].to_pylist())


def by_pyarrow(folder: Path) -> list[str]:
    return sorted(pa.dataset.dataset(folder, format="parquet").to_table()["a"].to_pylist())


def by_duckdb(folder: Path) -> list[str]:
    with duckdb.connect() as connection:
        found = connection.execute(f"select a from read_parquet('{folder}/**/*.parquet')").fetchall()
    return sorted(row for (row,) in found)


def by_polars(folder: Path) -> list[str]:
    return sorted(polars.scan_parquet(f"{folder}/**/*.parquet").select("a").collect()["a"].to_list())
