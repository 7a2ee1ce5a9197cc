"""format("kgctl"): topics as DataFrames by kgctl's own client, with the options and columns of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kgctl.pipelines.schemas import HEADERS_DDL, RAW_DDL
from kgctl.pipelines.source.options import BadOption, ReadOptions, read_options, write_options
from kgctl.pipelines.source.planning import Snapshot, plan_batch, take_snapshot, to_tasks
from kgctl.pipelines.source.ranges import OffsetRange
from kgctl.pipelines.source.reading import ReadTask
from kgctl.pipelines.source.record_columns import RAW_SCHEMA, RAW_SCHEMA_WITH_HEADERS
from kgctl.pipelines.source.tasks import read_task

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kgctl.pipelines.source.streaming import KgctlStreamReader
    from kgctl.pipelines.source.writer import KgctlStreamWriter, KgctlWriter


@dataclass
class TaskPartition(InputPartition):
    task: ReadTask


class KgctlDataSource(DataSource):
    """Spark keeps the pickled source of a DataFrame for all of its actions, so what `schema` has seen holds for them all."""

    _seen: Snapshot | None = None

    @classmethod
    def name(cls) -> str:
        return "kgctl"

    def schema(self) -> str:
        options = self._read_options
        self._seen = take_snapshot(options)
        return f"{RAW_DDL}, {HEADERS_DDL}" if options.include_headers else RAW_DDL

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
        if self._seen is None:
            self._seen = take_snapshot(options)
        return plan_batch(options, self._seen)


class KgctlReader(DataSourceReader):
    """One task per range.

    Takes no filters: Spark 4.3 keeps the ranges that one query has narrowed for the next query on the same DataFrame,
    which then misses rows. Options narrow a read: assign, startingOffsets, endingTimestamp and the like.
    """

    def __init__(self, options: ReadOptions, ranges: list[OffsetRange]) -> None:
        self.options, self.ranges = options, ranges

    def partitions(self) -> list[InputPartition]:
        return [TaskPartition(task) for task in to_tasks(self.ranges, self.options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Where there is nothing to read Spark makes up a partition of its own.
        return read_task(partition.task) if isinstance(partition, TaskPartition) else iter(())


def _check_schema(schema: StructType, options: ReadOptions) -> None:
    """A schema that a user sets can only be the one that there is."""
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = RAW_SCHEMA_WITH_HEADERS if options.include_headers else RAW_SCHEMA
    if not to_arrow_schema(schema, timezone="UTC").equals(wanted):
        raise BadOption(f'format("kgctl") has a schema of its own, leave out schema(...): {", ".join(wanted.names)}')
