"""decode: the cluster's own topic of commits and groups, as tables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from kgctl.pipelines import schemas
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.spark import write_batch
from kgctl.pipelines.transforms import decode

if TYPE_CHECKING:
    from kgctl.pipelines.jobs.run import Run

TABLES = (
    (schemas.COMMITS, decode.commits),
    (schemas.GROUP_EVENTS, decode.group_events),
    (schemas.QUARANTINE, decode.quarantine),
)


def start(run: Run) -> StreamingQuery:
    # Decoded here, once: to describe it to Spark anew takes longer than a small batch.
    decoded = decode.decode(run.stream("decode"))
    return run.start("decode", decoded, partial(_write, run.settings), "append")


def _write(settings: RunSettings, decoded: DataFrame, batch: str) -> None:
    decoded = decoded.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        for table, rows in TABLES:
            write_batch(rows(decoded), settings.table_dir(table.name), batch, table)
    finally:
        decoded.unpersist()
