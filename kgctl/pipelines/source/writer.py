"""The writer of format("kgctl"): every task produces its rows, so the driver has nothing to commit."""

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

from kgctl.pipelines.source.option_names import BadOption
from kgctl.pipelines.source.options import WriteOptions
from kgctl.pipelines.source.values import COLUMNS, Columns
from kgctl.pipelines.source.writing import write_rows

_TEXT = (StringType, BinaryType)
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_HEADERS = "array<struct<key: string, value: binary>>"


@dataclass
class Acknowledged(WriterCommitMessage):
    records: int


class KgctlWriter(DataSourceArrowWriter):
    """At least once: what a failed task has written stays, and Spark runs the task again."""

    def __init__(self, options: WriteOptions, columns: Columns) -> None:
        self._options, self._columns = options, columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return Acknowledged(write_rows(self._options, self._columns, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to do: all rows are acknowledged."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to do: records cannot be withdrawn."""


class KgctlStreamWriter(DataSourceStreamArrowWriter):
    """At least once: a micro-batch that Spark repeats is written again."""

    def __init__(self, options: WriteOptions, columns: Columns) -> None:
        self._options, self._columns = options, columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return Acknowledged(write_rows(self._options, self._columns, iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to do: all rows are acknowledged."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing to do: records cannot be withdrawn."""


def check_columns(schema: StructType, options: WriteOptions) -> Columns:
    """The positions of key, value, topic, partition and headers; other columns are ignored. Raises BadOption for a wrong type."""
    found = {field.name.lower(): number for number, field in enumerate(schema.fields)}
    positions = {name: found[name] for name in COLUMNS if name in found}
    if "value" not in positions:
        raise BadOption(
            "the DataFrame needs a column 'value', string or binary (optional: key, topic, partition, headers)"
        )
    if options.topic is None and "topic" not in positions:
        raise BadOption("no topic: set the option 'topic', or add a column 'topic'")
    for name, position in positions.items():
        kind = schema.fields[position].dataType
        wanted = _misfit(name, kind)
        if wanted:
            raise BadOption(f"the column {name!r} is {kind.simpleString()}; cast it to {wanted}")
    return Columns(positions)


def _misfit(name: str, kind: DataType) -> str | None:
    """The type that the column should have, or None if it fits."""
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
