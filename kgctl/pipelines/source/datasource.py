"""format("kgctl"): topics as DataFrames through kgctl's own client, with the options and columns of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kgctl.pipelines.schemas.sources import raw_ddl
from kgctl.pipelines.source.option_names import COLUMNS, BadOption
from kgctl.pipelines.source.options import ReadOptions, read_options, write_options
from kgctl.pipelines.source.planning import Snapshot, plan_batch, take_snapshot, to_tasks
from kgctl.pipelines.source.ranges import OffsetRange
from kgctl.pipelines.source.record_columns import schema_of
from kgctl.pipelines.source.tasks import TaskPartition, read_task

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kgctl.pipelines.source.streaming import KgctlStreamReader
    from kgctl.pipelines.source.writer import KgctlStreamWriter, KgctlWriter


class KgctlDataSource(DataSource):
    """Spark keeps the pickled source of a DataFrame for all its actions, so they all share the snapshot that `schema` takes."""

    _snapshot: Snapshot | None = None

    @classmethod
    def name(cls) -> str:
        return "kgctl"

    def schema(self) -> str:
        self._snapshot = take_snapshot(self._read_options)
        return raw_ddl(self._read_options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return KgctlReader(self._read_options, self._ranges(schema))

    def streamReader(self, schema: StructType) -> KgctlStreamReader:
        from kgctl.pipelines.source.streaming import KgctlStreamReader

        _check_schema(schema, self._read_options)
        return KgctlStreamReader(self._read_options)

    def writer(self, schema: StructType, overwrite: bool) -> KgctlWriter:
        from kgctl.pipelines.source.writer import KgctlWriter, check_columns

        if overwrite:
            raise BadOption("a topic cannot be overwritten: write with mode('append')")
        options = write_options(self.options)
        return KgctlWriter(options, check_columns(schema, options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> KgctlStreamWriter:
        from kgctl.pipelines.source.writer import KgctlStreamWriter, check_columns

        options = write_options(self.options)
        return KgctlStreamWriter(options, check_columns(schema, options))

    @cached_property
    def _read_options(self) -> ReadOptions:
        return read_options(self.options)

    def _ranges(self, schema: StructType) -> list[OffsetRange]:
        options = self._read_options
        _check_schema(schema, options)
        if self._snapshot is None:
            self._snapshot = take_snapshot(options)
        return plan_batch(options, self._snapshot)


class KgctlReader(DataSourceReader):
    """One task per range.

    It does not accept filters: Spark 4.3 reuses the ranges that one query narrowed for the next query on the same
    DataFrame, which then misses rows. Narrow a read with options: assign, startingOffsets, endingTimestamp and others.
    """

    def __init__(self, options: ReadOptions, ranges: list[OffsetRange]) -> None:
        self.options, self.ranges = options, ranges

    def partitions(self) -> list[InputPartition]:
        return [TaskPartition(task) for task in to_tasks(self.ranges, self.options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # If there is nothing to read, Spark passes a partition that it made itself.
        return read_task(partition.task) if isinstance(partition, TaskPartition) else iter(())


def _check_schema(schema: StructType, options: ReadOptions) -> None:
    """The user may set a schema, but only the source's own."""
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = schema_of(options.columns)
    if not to_arrow_schema(schema, timezone="UTC").equals(wanted):
        raise BadOption(
            f'format("kgctl") has a fixed schema, leave out schema(...): {", ".join(wanted.names)}; '
            f"the option {COLUMNS} chooses columns"
        )
