"""Reads the rows of the newest point in time of a table, without reading the rows before it. Needs pyarrow, not Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.arrow import read_file
from kgctl.pipelines.tables.formats import open_table

# The note of a batch that measures everything at one time, ms since 1970: a batch without rows has only this.
MEASURED = "at_ms"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def newest_rows(out: Path, table: Table, columns: Sequence[str], at: str = "at") -> tuple[int, pa.Table] | None:
    """The greatest `at`, in ms since 1970, and all rows with it; None if there are none. Raises Damaged, Newer.

    `at` names a timestamp. Columns that the table lacks are left out. If a later batch with the note MEASURED has no rows,
    there are none now.
    """
    folder = open_table(out / table.name)
    with folder.reading():
        measured = folder.state().notes.get(MEASURED)
        newest_of = [(path, file, newest_us(path, at)) for path, file in folder.located()]
        times = [newest for _, _, newest in newest_of if newest is not None]
        if not times:
            return None
        last_us = max(times)
        if measured is not None and last_us // 1000 < int(measured):
            return None
        parts = [
            read_file(path, table, file.schema, [*columns, at]) for path, file, newest in newest_of if newest == last_us
        ]
    rows = pa.concat_tables(parts)
    rows = rows.filter(pc.equal(rows[at].cast(pa.int64()), last_us))
    return last_us // 1000, rows if at in columns else rows.drop_columns([at])


def measured_ms(out: Path, table: Table) -> int | None:
    """When a batch last measured everything, whatever it found; None if no batch has that note."""
    found = open_table(out / table.name).state().notes.get(MEASURED)
    return None if found is None else int(found)


def newest_us(path: Path, at: str) -> int | None:
    """The newest time in a file, in us since 1970: from its statistics, if it has them. None: it has no row."""
    with parquet.ParquetFile(path) as file:
        metadata, column = file.metadata, file.schema_arrow.names.index(at)
        found = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
        # Statistics beyond the years 1 to 9999 cannot be read.
        with suppress(OverflowError):
            if found and all(one is not None and one.has_min_max and one.max.tzinfo is not None for one in found):
                return max((one.max - _EPOCH) // timedelta(microseconds=1) for one in found)
        times = file.read(columns=[at])[at]
    newest = pc.max(times.cast(pa.timestamp("us")).cast(pa.int64())).as_py()
    return None if newest is None else int(newest)
