"""Reads a table with DuckDB and pyarrow while and after its writer is killed, and checks it against the manifests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.dataset
import pyarrow.parquet

from kgctl.pipelines.tables.manifest import TableFolder


@dataclass(frozen=True, slots=True)
class Seen:
    """Rows by each way of reading, and the number of distinct (partition, offset) among them."""

    manifests: int
    files_of_manifests: int
    duckdb: int
    duckdb_places: int
    pyarrow: int
    pyarrow_places: int


def read_all(table: Path) -> Seen:
    """AssertionError for a file that is torn, doubled or not committed."""
    folder = TableFolder(table)
    before = {path: path.stat().st_size for path in sorted(table.glob("**/*.parquet"))}
    committed = {table / file.path: file for file in folder.state().files}
    assert before.keys() <= committed.keys(), f"not committed: {sorted(before.keys() - committed.keys())}"
    for path, size in before.items():
        assert size == committed[path].size, path
        assert pyarrow.parquet.read_metadata(path).num_rows == committed[path].rows, path
    visible = sum(committed[path].rows for path in before)
    by_duckdb, by_pyarrow = _by_duckdb(table, bool(before)), _by_pyarrow(table, bool(before))
    assert by_duckdb == by_pyarrow == (visible, visible), f"{visible} rows: {by_duckdb} {by_pyarrow}"
    rows = sum(pyarrow.parquet.read_metadata(path).num_rows for path in folder.files())
    return Seen(folder.rows(), rows, *by_duckdb, *by_pyarrow)


def whole(rows: int) -> Seen:
    """Every way of reading finds this many rows, each once."""
    return Seen(rows, rows, rows, rows, rows, rows)


def _by_duckdb(table: Path, any_file: bool) -> tuple[int, int]:
    if not any_file:
        return (0, 0)
    query = """select count(*), count(distinct ("partition", "offset")) from read_parquet(?)"""
    with duckdb.connect() as connection:
        found = connection.execute(query, [f"{table}/**/*.parquet"]).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])


def _by_pyarrow(table: Path, any_file: bool) -> tuple[int, int]:
    if not any_file:
        return (0, 0)
    rows = pyarrow.dataset.dataset(table, format="parquet").to_table(columns=["partition", "offset"])
    places = rows.group_by(["partition", "offset"]).aggregate([])
    return rows.num_rows, places.num_rows
