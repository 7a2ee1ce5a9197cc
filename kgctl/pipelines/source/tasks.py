"""What one task of Spark does: reads a range and gives its records as columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from kgctl.pipelines.source.reading import ReadTask, read_range
from kgctl.pipelines.source.record_columns import record_batches


def read_task(task: ReadTask) -> Iterator[pa.RecordBatch]:
    """The records of the range in order of offset, with the columns of RAW_SCHEMA, and headers where they are wanted."""
    for fetched in read_range(task):
        yield from record_batches(fetched, headers=task.include_headers)
