"""Reads the rows of the newest point in time of a table, without reading the rows before it. Needs pyarrow, not Spark."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from kgctl.pipelines.tables.manifest import TableFolder

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def newest_rows(folder: TableFolder, columns: Sequence[str], at: str = "at") -> tuple[int, pa.Table] | None:
    """The greatest `at`, in ms since 1970, and all rows with it; None if the table is empty. Raises Damaged.

    `at` names a timestamp. Columns that a file lacks are left out.
    """
    newest_of = {path: newest for path in folder.files() if (newest := _newest(path, at)) is not None}
    if not newest_of:
        return None
    last_us = max(newest_of.values())
    parts = [_rows(path, columns, at, last_us) for path, newest in newest_of.items() if newest == last_us]
    return last_us // 1000, pa.concat_tables(parts, promote_options="default")


def _rows(path: Path, columns: Sequence[str], at: str, last_us: int) -> pa.Table:
    with parquet.ParquetFile(path) as file:
        known = set(file.schema_arrow.names)
        table = file.read(columns=[name for name in dict.fromkeys((*columns, at)) if name in known])
    times = table[at].cast(pa.timestamp("us")).cast(pa.int64())
    return table.filter(pc.equal(times, last_us)).drop_columns([at])


def _newest(path: Path, at: str) -> int | None:
    """In us since 1970: from the statistics of the file, if it has them."""
    with parquet.ParquetFile(path) as file:
        metadata, column = file.metadata, file.schema_arrow.names.index(at)
        found = [metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups)]
        if found and all(one is not None and one.has_min_max and one.max.tzinfo is not None for one in found):
            return max((one.max - _EPOCH) // timedelta(microseconds=1) for one in found)
        times = file.read(columns=[at])[at]
    newest = pc.max(times.cast(pa.timestamp("us")).cast(pa.int64())).as_py()
    return None if newest is None else int(newest)
