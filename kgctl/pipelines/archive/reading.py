"""Reads ranges of offsets with Spark: each task writes its records to Parquet files, and returns what the files hold."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kgctl.pipelines.archive.files import write_files
from kgctl.pipelines.archive.layout import JOB, ArchivedFile
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source import connector
from kgctl.pipelines.source.options import read_options
from kgctl.pipelines.source.planning import to_tasks
from kgctl.pipelines.source.ranges import OffsetRange, to_json
from kgctl.pipelines.source.reading import ReadTask
from kgctl.pipelines.source.record_columns import RAW_SCHEMA_WITH_HEADERS
from kgctl.pipelines.source.tasks import read_task
from kgctl.pipelines.spark.failures import Interrupted, JobFailed, reason_of
from kgctl.pipelines.spark.monitoring import task_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FACTS = pa.schema([("facts", pa.string())])
# Spark hands records to Python in batches of this size: not 10,000 records, which may be large.
_BATCH_CONF = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(8 << 20),
}


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Writes the records that Spark's connector reads. `staging` is a folder that driver and executors share."""

    staging: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _facts(write_files(batches, Path(self.staging)))


@dataclass(frozen=True, slots=True)
class ReadAndWriteTasks:
    """Reads with kgctl's source and writes in the same task: no record passes through the JVM. A row is the number of a task."""

    tasks: tuple[ReadTask, ...]
    staging: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _facts(write_files(read_task(self.tasks[number]), Path(self.staging)))


def _facts(files: Iterable[ArchivedFile]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([json.dumps(asdict(file)) for file in files], pa.string())], schema=_FACTS
    )


def reader(
    spark: SparkSession,
    settings: RunSettings,
    connection_options: Mapping[str, str],
    emit: Callable[[Progress], None],
    stop: threading.Event,
) -> Callable[[Sequence[OffsetRange], Path], list[ArchivedFile]]:
    """A function that writes the records of ranges to files in a folder. It raises JobFailed, or Interrupted after `stop`."""
    conf = _BATCH_CONF | (connector.session_conf(settings.archived) if settings.source == "kafka" else {})
    for name, value in conf.items():
        spark.conf.set(name, value)

    def read(ranges: Sequence[OffsetRange], staging: Path) -> list[ArchivedFile]:
        with named_failures(stop), task_progress(spark, JOB, emit, stop):
            return read_ranges(spark, settings, connection_options, ranges, staging)

    return read


@contextmanager
def named_failures(stop: threading.Event) -> Iterator[None]:
    """What fails is raised as JobFailed, or as Interrupted after `stop`."""
    try:
        yield
    except Exception as error:
        if stop.is_set():
            raise Interrupted from None
        raise JobFailed(JOB, reason_of(error)) from error


def read_ranges(
    spark: SparkSession,
    settings: RunSettings,
    connection_options: Mapping[str, str],
    ranges: Sequence[OffsetRange],
    staging: Path,
) -> list[ArchivedFile]:
    """Write the records of the ranges. What a task wrote that Spark repeated is in the folder, but not in the result."""
    if settings.source == "kgctl":
        tasks = read_tasks(settings, connection_options, ranges)
        numbers = spark.range(0, len(tasks), 1, len(tasks))
        found = numbers.mapInArrow(ReadAndWriteTasks(tasks, str(staging)), "facts string").collect()
    else:
        options = _options(settings, ranges) | dict(connection_options)
        frame = spark.read.format(settings.source).options(**options).load()
        rows = frame.select(*(f"`{name}`" for name in RAW_SCHEMA_WITH_HEADERS.names))
        found = rows.mapInArrow(WriteTask(str(staging)), "facts string").collect()
    return [ArchivedFile(**json.loads(row["facts"])) for row in found]


def read_tasks(
    settings: RunSettings, connection_options: Mapping[str, str], ranges: Sequence[OffsetRange]
) -> tuple[ReadTask, ...]:
    """What Spark's tasks do with kgctl's source."""
    return tuple(to_tasks(ranges, read_options(_options(settings, ranges) | dict(connection_options))))


def _options(settings: RunSettings, ranges: Sequence[OffsetRange]) -> dict[str, str]:
    numbers: dict[str, list[int]] = {}
    for one in ranges:
        numbers.setdefault(one.partition.topic, []).append(one.partition.partition)
    options = {
        "kafka.bootstrap.servers": settings.bootstrap,
        "kafka.isolation.level": settings.isolation_level,
        "assign": json.dumps(numbers),
        "startingOffsets": json.dumps(to_json({one.partition: one.start for one in ranges})),
        "endingOffsets": json.dumps(to_json({one.partition: one.end for one in ranges})),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }
    if settings.source == "kafka":
        options |= connector.FAST
    return options | dict(settings.source_options)
