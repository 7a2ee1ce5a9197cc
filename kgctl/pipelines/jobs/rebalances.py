"""rebalances: from the events of kgctl's broker, or from __consumer_offsets of any other cluster."""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.schemas.groups import MEMBERSHIPS, REBALANCES
from kgctl.pipelines.schemas.sources import EVENTS_TOPIC
from kgctl.pipelines.transforms import decode, rebalances


def start(run: RunContext, job: Job) -> StreamingQuery:
    tables = run.tables

    def write(followed: DataFrame, batch: str) -> None:
        followed = followed.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            tables.write(REBALANCES, rebalances.rebalances(followed), batch)
            tables.write(MEMBERSHIPS, rebalances.memberships(followed), batch)
        finally:
            followed.unpersist()

    raw = run.stream(job)
    if run.topic_of(job) == EVENTS_TOPIC:
        followed = rebalances.from_events(raw)
    else:
        followed = rebalances.from_log(decode.decode(raw))
    return run.start(job, followed, write)
