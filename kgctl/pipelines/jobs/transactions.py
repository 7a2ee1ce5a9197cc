"""transactions: every transaction that ended, from `__transaction_state`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.schemas.topics import TRANSACTIONS
from kgctl.pipelines.transforms import transactions


def start(run: RunContext, job: Job) -> StreamingQuery:
    tables = run.tables

    def write(rows: DataFrame, batch: str) -> None:
        tables.write(TRANSACTIONS, rows, batch)

    return run.start(job, transactions.ended(run.stream(job)), write)
