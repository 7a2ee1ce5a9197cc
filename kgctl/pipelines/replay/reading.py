"""Reads what is left of an archive as runs of records. Imports pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, repeat

import pyarrow as pa
import pyarrow.parquet as parquet

from kgctl.client.producer.records import Headers
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.files import check_content, overlapping, read_records, timestamps_ms
from kgctl.pipelines.archive.layout import ArchivedFile
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.replay.records import RecordFilter, Run
from kgctl.pipelines.tables.manifest import Damaged

# As Python objects records take several times their size, and many partitions are read at once.
_MOST_ROWS, _BATCH_BYTES = 2_000, 1 << 20
_TIMES_ROWS = 8_192


def read_runs(archive: Archive, partition: TopicPartition, start: int, chosen: RecordFilter) -> Iterator[Run]:
    """The records of a partition from offset `start` that pass, and last a run that reaches the end of the archive.

    Raises Damaged if a file is not what was written.
    """
    end = archive.spans[partition][1]
    position = start
    for some in overlapping(archive.files(partition)):
        first, after = some[0].first_offset, max(file.last_offset for file in some) + 1
        if after <= start or not any(chosen.overlaps(file.min_timestamp_ms, file.max_timestamp_ms) for file in some):
            continue
        for file in some:
            check_content(archive, file)
        try:
            for batch in read_records(archive, partition, max(first, start), after, batch_bytes=_BATCH_BYTES):
                for place in range(0, batch.num_rows, _MOST_ROWS):
                    run = chosen.of(_run(partition, batch.slice(place, _MOST_ROWS)))
                    position = run.next_offset
                    yield run
        except (OSError, pa.ArrowInvalid) as error:
            raise Damaged(f"{archive.folder}: a file of {partition} cannot be read ({error})") from error
    if position < end:
        yield Run(partition, [], [], [], [], [], end)


def read_times(archive: Archive, file: ArchivedFile, *, needs_keys: bool) -> Iterator[tuple[int, bytes | None, int]]:
    """Offset, key and time of each record of a file, ms since 1970; the key is None unless `needs_keys`. Raises Damaged."""
    path = archive.path_of(file)
    columns = ["offset", "timestamp", "key"] if needs_keys else ["offset", "timestamp"]
    try:
        with parquet.ParquetFile(path) as opened:
            for batch in opened.iter_batches(_TIMES_ROWS, columns=columns):
                keys = batch.column("key").to_pylist() if needs_keys else repeat(None, batch.num_rows)
                yield from zip(batch.column("offset").to_pylist(), keys, timestamps_ms(batch).tolist(), strict=True)
    except (OSError, pa.ArrowInvalid) as error:
        raise Damaged(f"{path}: the file cannot be read ({error})") from error


def _run(partition: TopicPartition, batch: pa.RecordBatch) -> Run:
    offsets = batch.column("offset").to_pylist()
    return Run(
        partition,
        offsets,
        timestamps_ms(batch).tolist(),
        batch.column("key").to_pylist(),
        batch.column("value").to_pylist(),
        _headers(batch.column("headers")),
        offsets[-1] + 1,
    )


def _headers(column: pa.ListArray) -> list[Headers]:
    """Names and values of each record's headers in their order."""
    if column.null_count == len(column):
        return list(repeat((), len(column)))
    names = column.values.field(0).to_pylist()
    values = column.values.field(1).to_pylist()
    places = column.offsets.to_pylist()
    return [
        tuple(zip(names[start:end], values[start:end], strict=True)) if start < end else ()
        for start, end in pairwise(places)
    ]
