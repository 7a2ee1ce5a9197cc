"""Writes and reads the Parquet files of an archive. Imports pyarrow, not Spark.

A row has the columns of Spark's Kafka source without the topic, which is in the path of the file.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as parquet

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import ArchivedFile, day_of, folder_of
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.source.record_columns import RAW_SCHEMA_WITH_HEADERS
from kgctl.pipelines.tables.errors import Damaged

# In the order of a person's interest; timestamps are whole milliseconds.
FILE_SCHEMA = pa.schema(
    [
        RAW_SCHEMA_WITH_HEADERS.field(name)
        for name in ("partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
    ]
)
_DAY_US = 86_400_000_000
# A row group is written when all open files together hold this much, so that memory does not grow with the days in a topic.
_ROW_GROUP_BYTES = 32 << 20
_MAX_OPEN_FILES = 32
# The most rows and about the most bytes of a batch that is read; pages are read from the file in pieces of the buffer.
_READ_ROWS, _READ_BYTES, _BUFFER_BYTES = 32_768, 4 << 20, 64 << 10


def write_files(batches: Iterable[pa.RecordBatch], staging: Path) -> list[ArchivedFile]:
    """Write records, which are in offset order per partition and have the columns of RAW_SCHEMA_WITH_HEADERS.

    A file per partition and day; more if the days of a partition alternate a lot. Paths are relative to `staging`.
    """
    writers = _Writers(staging)
    try:
        for batch in batches:
            writers.add(batch)
        return writers.close()
    except BaseException:
        writers.abort()
        raise


def merge_files(archive: Archive, files: Sequence[ArchivedFile], staging: Path) -> ArchivedFile:
    """Write the records of files of one partition and day, in the order of their first offsets, to one file."""
    first = files[0]
    merged = _File(staging, first.topic, first.partition, day_of(first.min_timestamp_ms))
    try:
        for some in overlapping(files):
            for batch in _merged(archive, some):
                merged.add(batch)
                if merged.held_bytes >= _ROW_GROUP_BYTES:
                    merged.flush()
        return merged.close()
    except BaseException:
        merged.abort()
        raise


def read_records(
    archive: Archive,
    partition: TopicPartition,
    start: int | None = None,
    end: int | None = None,
    *,
    batch_bytes: int = _READ_BYTES,
) -> Iterator[pa.RecordBatch]:
    """The records of a partition in offset order with the columns of FILE_SCHEMA, from `start` up to, but not including, `end`.

    A batch has about `batch_bytes`, or one record. Only files whose offsets overlap are open at the same time. Checksums are not checked. Raises OSError or pa.ArrowInvalid if a file is missing or damaged.
    """
    files = [
        file
        for file in archive.files(partition)
        if (start is None or file.last_offset >= start) and (end is None or file.first_offset < end)
    ]
    for some in overlapping(files):
        for batch in _merged(archive, some, batch_bytes):
            wanted = _between(batch, start, end)
            if wanted.num_rows:
                yield wanted


def check_content(archive: Archive, file: ArchivedFile) -> None:
    """Raises Damaged if the file is missing, or is not what was committed."""
    path = archive.path_of(file)
    try:
        with path.open("rb") as opened:
            checksum = hashlib.file_digest(opened, "sha256").hexdigest()
    except FileNotFoundError:
        raise Damaged(f"{path}: the file is missing") from None
    if checksum != file.sha256:
        raise Damaged(f"{path}: the checksum is not that of the manifest; `kgctl pipeline verify` checks all files")


def timestamps_ms(batch: pa.RecordBatch) -> np.ndarray:
    """The timestamps of the records, ms since 1970; -1 for a record that has none."""
    return batch.column("timestamp").cast(pa.int64()).to_numpy() // 1000


class _Writers:
    """The open files by topic, partition and day, the least recently used first."""

    def __init__(self, staging: Path) -> None:
        self._staging = staging
        self._open: dict[tuple[str, int, int], _File] = {}
        self._finished: list[ArchivedFile] = []

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        days = np.floor_divide(batch.column("timestamp").cast(pa.int64()).to_numpy(), _DAY_US)
        numbers = batch.column("partition").to_numpy()
        for topic in batch.column("topic").unique().to_pylist():
            of_topic = np.asarray(compute.equal(batch.column("topic"), topic))
            for number in np.unique(numbers[of_topic]).tolist():
                here = of_topic & (numbers == number)
                for day in np.unique(days[here]).tolist():
                    chosen = here & (days == day)
                    rows = batch if chosen.all() else batch.filter(pa.array(chosen))
                    self._file(topic, number, day).add(rows.select(FILE_SCHEMA.names))
        if sum(file.held_bytes for file in self._open.values()) >= _ROW_GROUP_BYTES:
            for file in self._open.values():
                file.flush()

    def close(self) -> list[ArchivedFile]:
        for key in list(self._open):
            self._finished.append(self._open.pop(key).close())
        return self._finished

    def abort(self) -> None:
        for file in self._open.values():
            file.abort()

    def _file(self, topic: str, number: int, day: int) -> _File:
        key = (topic, number, day)
        file = self._open.pop(key, None)
        if file is None:
            if len(self._open) >= _MAX_OPEN_FILES:
                self._finished.append(self._open.pop(next(iter(self._open))).close())
            file = _File(self._staging, topic, number, day)
        self._open[key] = file
        return file


class _File:
    def __init__(self, staging: Path, topic: str, partition: int, day: int) -> None:
        # Unique: a task that Spark repeats must not write to the file of the attempt before.
        self._path = f"{folder_of(topic, day)}/{partition:05d}-{uuid.uuid4().hex}.parquet"
        self._topic, self._partition = topic, partition
        self._file = staging / self._path
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._writer = parquet.ParquetWriter(
            self._file,
            FILE_SCHEMA.with_metadata({"kgctl.topic": topic}),
            compression="zstd",
            use_dictionary=["partition", "timestampType", "key"],
            column_encoding={"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
            write_statistics=["partition", "offset", "timestamp"],
        )
        self._held: list[pa.RecordBatch] = []
        self.held_bytes = 0
        self._first, self._last, self._records = -1, -1, 0
        self._oldest_us, self._newest_us = 2**63 - 1, -(2**63)

    def add(self, rows: pa.RecordBatch) -> None:
        if self._first < 0:
            self._first = rows.column("offset")[0].as_py()
        self._last = rows.column("offset")[-1].as_py()
        self._records += rows.num_rows
        times = rows.column("timestamp").cast(pa.int64()).to_numpy()
        self._oldest_us, self._newest_us = (
            min(self._oldest_us, int(times.min())),
            max(self._newest_us, int(times.max())),
        )
        self._held.append(rows)
        self.held_bytes += rows.nbytes

    def flush(self) -> None:
        if self._held:
            table = pa.Table.from_batches(self._held).cast(FILE_SCHEMA)
            self._writer.write_table(table, row_group_size=table.num_rows)
            self._held, self.held_bytes = [], 0

    def close(self) -> ArchivedFile:
        self.flush()
        self._writer.close()
        with self._file.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        return ArchivedFile(
            path=self._path,
            topic=self._topic,
            partition=self._partition,
            first_offset=self._first,
            last_offset=self._last,
            records=self._records,
            size=self._file.stat().st_size,
            sha256=checksum,
            min_timestamp_ms=self._oldest_us // 1000,
            max_timestamp_ms=self._newest_us // 1000,
        )

    def abort(self) -> None:
        self._writer.close()


def overlapping(files: Iterable[ArchivedFile]) -> Iterator[list[ArchivedFile]]:
    """Files in the order of their first offsets, together with those that share their range of offsets."""
    some: list[ArchivedFile] = []
    last = -1
    for file in files:
        if some and file.first_offset > last:
            yield some
            some = []
        some.append(file)
        last = max(last, file.last_offset)
    if some:
        yield some


def _merged(archive: Archive, files: list[ArchivedFile], batch_bytes: int = _READ_BYTES) -> Iterator[pa.RecordBatch]:
    """The rows of files in offset order; each file is in offset order, and they are in that of their first offsets."""
    if len(files) == 1:
        yield from _batches(archive.path_of(files[0]), batch_bytes)
        return
    waiting = list(reversed(files))
    heads: list[tuple[pa.RecordBatch, Iterator[pa.RecordBatch]]] = []
    while heads or waiting:
        until = min((_last_offset(batch) for batch, _ in heads), default=waiting[-1].first_offset if waiting else 0)
        while waiting and waiting[-1].first_offset <= until:
            source = _batches(archive.path_of(waiting.pop()), batch_bytes)
            heads += [(batch, source) for batch in [next(source, None)] if batch is not None]
            until = min((_last_offset(batch) for batch, _ in heads), default=until)
        parts, kept = [], []
        for batch, source in heads:
            count = int(np.searchsorted(batch.column("offset").to_numpy(), until, side="right"))
            parts.append(batch.slice(0, count))
            rest = batch.slice(count) if count < batch.num_rows else next(source, None)
            if rest is not None:
                kept.append((rest, source))
        heads = kept
        if parts:
            yield from pa.Table.from_batches(parts).sort_by("offset").combine_chunks().to_batches()


def _last_offset(batch: pa.RecordBatch) -> int:
    return int(batch.column("offset")[-1].as_py())


def _batches(path: Path, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    with parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES) as file:
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            rows = batch_bytes * group.num_rows // max(1, group.total_byte_size)
            size = max(1, min(_READ_ROWS, rows))
            for batch in file.iter_batches(size, row_groups=[number], columns=FILE_SCHEMA.names):
                if batch.num_rows:
                    yield batch


def _between(batch: pa.RecordBatch, start: int | None, end: int | None) -> pa.RecordBatch:
    offsets = batch.column("offset").to_numpy()
    first = 0 if start is None else int(np.searchsorted(offsets, start))
    last = len(offsets) if end is None else int(np.searchsorted(offsets, end))
    return batch.slice(first, last - first)
