"""The writer of format("kgctl"): every task produces its rows; nothing is left to commit on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from kgctl.pipelines.source.options import BadOption, WriteOptions
from kgctl.pipelines.source.values import COLUMNS, Columns
from kgctl.pipelines.source.writing import write_rows

_TEXT = (StringType, BinaryType)
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_HEADERS = "array<struct<key: string, value: binary>>"


@dataclass
class Acknowledged(WriterCommitMessage):
    records: int


class KgctlWriter(DataSourceArrowWriter):
    """At least once: a task that fails half-way has written what it has written, and Spark runs it again."""

    def __init__(self, options: WriteOptions, columns: Columns) -> None:
        self._options, self._columns = options, columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return Acknowledged(write_rows(self._options, self._columns, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing: all rows are acknowledged by now."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing: what is written stays."""


class KgctlStreamWriter(DataSourceStreamArrowWriter):
    """At least once: a micro-batch that Spark runs again is written again."""

    def __init__(self, options: WriteOptions, columns: Columns) -> None:
        self._options, self._columns = options, columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return Acknowledged(write_rows(self._options, self._columns, iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing: all rows are acknowledged by now."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing: what is written stays."""


def check_columns(schema: StructType, options: WriteOptions) -> Columns:
    """Where key, value, topic, partition and headers stand; other columns are left out. BadOption if a type does not fit."""
    found = {field.name.lower(): number for number, field in enumerate(schema.fields)}
    positions = {name: found[name] for name in COLUMNS if name in found}
    if "value" not in positions:
        raise BadOption("a topic takes a column 'value' (and key, topic, partition, headers), string or binary")
    if options.topic is None and "topic" not in positions:
        raise BadOption("which topic? Set the option 'topic', or give a column 'topic'")
    for name, position in positions.items():
        kind = schema.fields[position].dataType
        wanted = _misfit(name, kind)
        if wanted:
            raise BadOption(f"the column {name!r} is {kind.simpleString()}; cast it to {wanted}")
    return Columns(positions)


def _misfit(name: str, kind: DataType) -> str | None:
    """What the column should be, if it is something else."""
    if name in ("key", "value"):
        return None if isinstance(kind, _TEXT) else "string or binary"
    if name == "topic":
        return None if isinstance(kind, StringType) else "string"
    if name == "partition":
        return None if isinstance(kind, _WHOLE) else "int"
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        parts = {field.name: field.dataType for field in kind.elementType.fields}
        if (
            parts.keys() == {"key", "value"}
            and isinstance(parts["key"], StringType)
            and isinstance(parts["value"], BinaryType)
        ):
            return None
    return _HEADERS
