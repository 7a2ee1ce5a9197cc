"""rebalances: from the events of kgctl's broker, or from __consumer_offsets of any other cluster."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.schemas.groups import REBALANCES
from kgctl.pipelines.schemas.sources import EVENTS_TOPIC
from kgctl.pipelines.transforms import decode, rebalances


def start(run: RunContext, job: Job) -> StreamingQuery:
    def write(rows: DataFrame, batch: str) -> None:
        run.write(REBALANCES, rows, batch)

    raw = run.stream(job)
    if run.topic_of(job) == EVENTS_TOPIC:
        rows = rebalances.from_events(raw)
    else:
        rows = rebalances.from_log(decode.decode(raw))
    return run.start(job, rows, write)
