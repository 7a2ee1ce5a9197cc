"""The part that runs in a Spark task: reads a range and returns its records as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from kgctl.pipelines.source.reading import ReadTask, read_range
from kgctl.pipelines.source.record_columns import record_batches


@dataclass
class TaskPartition(InputPartition):
    """One task's range, as Spark carries it to the task."""

    task: ReadTask


def read_task(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """The records of the range in offset order, with the columns of the task."""
    for fetched in read_range(task):
        yield from record_batches(fetched, task.columns)
