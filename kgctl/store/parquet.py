"""Parquet files, with pyarrow from the extra arrow."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

from kgctl.store.sql import column_types, flat

ROWS_PER_GROUP = 50_000


def write_parquet(path: Path, row: type, rows: Iterable[Any]) -> None:
    """Write a file with a column for each field of the rows; lists become JSON."""
    types = column_types(row)
    schema = pyarrow.schema(
        [(name, pyarrow.int64() if kind is int else pyarrow.string()) for name, kind in types.items()]
    )
    left = iter(rows)
    with parquet.ParquetWriter(str(path), schema, compression="zstd") as writer:
        while some := list(islice(left, ROWS_PER_GROUP)):
            columns = [[flat(getattr(one, name)) for one in some] for name in types]
            writer.write_table(pyarrow.table(columns, schema=schema))
