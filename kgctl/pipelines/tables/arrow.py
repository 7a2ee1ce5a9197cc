"""Table files as Arrow tables with the columns of today. Needs pyarrow, not Spark."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet

from kgctl.pipelines.schemas.ddl import Array, Map, Struct, Type, parse
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.errors import Newer

_SIMPLE = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@cache
def arrow_schema(table: Table) -> pa.Schema:
    return pa.schema([(column.name, arrow_type(parse(column.type))) for column in table.columns])


def arrow_type(kind: Type) -> pa.DataType:
    match kind:
        case Array(element):
            return pa.list_(arrow_type(element))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([(name, arrow_type(each)) for name, each in fields])
        case _:
            return _SIMPLE[kind]


def read_file(path: Path, table: Table, version: int, columns: Iterable[str] | None = None) -> pa.Table:
    """The rows of one file, with today's columns or those that are asked for. Raises Newer."""
    wanted = None if columns is None else set(columns)
    check_version(path.parent.parent, table, version)
    stored = [one for one in table.stored_as(version) if wanted is None or one.column.name in wanted]
    with parquet.ParquetFile(path) as file:
        there = set(file.schema_arrow.names)
        rows = file.read(columns=[one.name for one in stored if one.name in there])
    # Of columns alone: casting a whole table compares their names.
    arrays, fields = [], []
    for one in stored:
        field = arrow_schema(table).field(one.column.name)
        arrays.append(rows[one.name].cast(field.type) if one.name in there else pa.nulls(len(rows), field.type))
        fields.append(field)
    return pa.table(arrays, schema=pa.schema(fields))


def check_version(folder: Path, table: Table, version: int) -> None:
    """Raises Newer if this kgctl does not know how such files look."""
    if version > table.version:
        raise Newer(
            f"{folder}: a newer kgctl wrote this table (schema version {version}; this one reads up to {table.version}); "
            "update kgctl"
        )
