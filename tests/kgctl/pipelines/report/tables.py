"""Tables made by hand: rows as dictionaries of their columns, times in ms since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.ddl import parse
from kgctl.pipelines.tables.arrow import arrow_type
from kgctl.pipelines.tables.manifest import Note, StagedFile, TableFolder


def commit(
    out: Path, table: str, rows: list[dict[str, Any]], batch: str = "one", notes: Mapping[str, Note] | None = None
) -> None:
    """Commit the rows as one batch of one file; missing columns are null."""
    columns = TABLES[table].columns
    content = {}
    for column in columns:
        values = [row.get(column.name) for row in rows]
        if column.type == "timestamp":
            values = [None if value is None else value * 1000 for value in values]
        content[column.name] = pa.array(values, arrow_type(parse(column.type)))
    with TableFolder(out / table).writing() as writer:
        staging = writer.stage(batch)
        (staging / "date=2024-01-01").mkdir(parents=True)
        pa.parquet.write_table(pa.table(content), staging / "date=2024-01-01" / "part-0.parquet")
        writer.commit(batch, staging, [StagedFile("date=2024-01-01/part-0.parquet", len(rows))], notes)
