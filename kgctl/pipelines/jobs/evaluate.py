"""evaluate: a verdict per partition of each group, over its last commits and the lag that it had at each of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from kgctl.pipelines import schemas
from kgctl.pipelines.jobs.committed import commits_of_people
from kgctl.pipelines.jobs.lookups import Ends, ends_at
from kgctl.pipelines.jobs.reached import reached
from kgctl.pipelines.tables.spark import write_batch
from kgctl.pipelines.transforms import evaluate
from kgctl.pipelines.transforms.lag import KEY

if TYPE_CHECKING:
    from kgctl.pipelines.jobs.run import Run

TASKS = 8


def run(run: Run) -> int:
    """Rows written to health: one per partition that has commits."""
    settings = run.settings
    now_ms = reached(settings) or time.time_ns() // 1_000_000
    everything = commits_of_people(run)
    newest = Window.partitionBy(*KEY).orderBy(f.desc("log_offset"))
    last = everything.withColumn("_rank", f.row_number().over(newest)).where(f.col("_rank") <= evaluate.WINDOW + 1)
    last = last.drop("_rank").persist()
    try:
        commits = last.where("not tombstone").select(*KEY, f.unix_millis("commit_ts").alias("at_ms"))
        points = commits.unionByName(last.select(*KEY, f.lit(now_ms).alias("at_ms"))).distinct()
        wanted = points.select("topic", "part", "at_ms").distinct().repartition(TASKS, "topic", "part")
        ends = ends_at(wanted, Ends(settings.bootstrap, now_ms, settings.timeout_s))
        # Each group by its own points: those of all groups of a partition would be as many as their square.
        ends = ends.withColumn("at_ms", f.unix_millis("at")).join(points, ["topic", "part", "at_ms"])
        rows = evaluate.evaluate(last, ends, now_ms)
        written = write_batch(
            rows, settings.table_dir(schemas.HEALTH.name), f"evaluate-{now_ms}", schemas.HEALTH, notes={"at_ms": now_ms}
        )
    finally:
        last.unpersist()
    return written.rows
