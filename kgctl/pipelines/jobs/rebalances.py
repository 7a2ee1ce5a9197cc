"""rebalances: the story that kgctl's own broker tells, or what the group metadata of any other cluster shows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from kgctl.pipelines import schemas
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.spark import write_batch
from kgctl.pipelines.transforms import decode, rebalances

if TYPE_CHECKING:
    from kgctl.pipelines.jobs.run import Run


def start(run: Run) -> StreamingQuery:
    return run.start("rebalances", _found(run), partial(_write, run.settings), "append")


def _found(run: Run) -> DataFrame:
    raw = run.stream("rebalances")
    if run.has_story:
        return rebalances.from_events(raw)
    return rebalances.from_metadata(decode.group_events(decode.decode(raw)))


def _write(settings: RunSettings, rows: DataFrame, batch: str) -> None:
    write_batch(rows, settings.table_dir(schemas.REBALANCES.name), batch, schemas.REBALANCES)
