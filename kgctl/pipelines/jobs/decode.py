"""decode: the records of __consumer_offsets as tables."""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.schemas.groups import COMMITS, GROUP_EVENTS, QUARANTINE
from kgctl.pipelines.transforms import decode

TABLES = (
    (COMMITS, decode.commits),
    (GROUP_EVENTS, decode.group_events),
    (QUARANTINE, decode.quarantine),
)


def start(run: RunContext, job: Job) -> StreamingQuery:
    tables = run.tables

    def write(decoded: DataFrame, batch: str) -> None:
        decoded = decoded.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            for table, rows in TABLES:
                tables.write(table, rows(decoded), batch)
        finally:
            decoded.unpersist()

    # Decoded before the batches: building the expressions for each batch takes longer than a small batch.
    return run.start(job, decode.decode(run.stream(job)), write)
