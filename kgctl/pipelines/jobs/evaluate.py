"""evaluate: the health of each partition of a group, from its last commits and the lag at each of them."""

from __future__ import annotations

import time

from pyspark.sql import Window
from pyspark.sql import functions as f

from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.commits import user_commits
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.lookups import CLIENT_ID, LogEndLookup, ends_at
from kgctl.pipelines.schemas.groups import HEALTH
from kgctl.pipelines.tables.newest import MEASURED
from kgctl.pipelines.transforms import evaluate
from kgctl.pipelines.transforms.lag import KEY, committed_at

TASKS = 8


def run(run: RunContext, job: Job) -> int:
    """Rows written to health: one per partition with commits."""
    settings = run.settings
    now_ms = run.inputs_complete_until(job) or time.time_ns() // 1_000_000
    newest = Window.partitionBy(*KEY).orderBy(f.desc("log_offset"))
    # Other groups may have committed after this time, which an open transaction holds back.
    until_now = user_commits(run).where(committed_at() <= f.timestamp_millis(f.lit(now_ms)))
    ranked = until_now.withColumn("_rank", f.row_number().over(newest))
    last = ranked.where(f.col("_rank") <= evaluate.WINDOW + 1).drop("_rank").persist()
    try:
        commits = last.where("not tombstone").select(*KEY, f.unix_millis("commit_ts").alias("at_ms"))
        times = f.array(f.lit(now_ms - 1000 * evaluate.RECENT_S), f.lit(now_ms))
        points = commits.unionByName(last.select(*KEY, f.explode(times).alias("at_ms"))).distinct()
        wanted = points.select("topic", "part", "at_ms").distinct().repartition(TASKS, "topic", "part")
        ends = ends_at(wanted, LogEndLookup(settings.connection(CLIENT_ID), now_ms))
        # Each group gets only its own points; those of all groups of a partition would grow quadratically.
        ends = ends.withColumn("at_ms", f.unix_millis("at")).join(points, ["topic", "part", "at_ms"])
        rows = evaluate.evaluate(last, ends, now_ms)
        written = run.write(HEALTH, rows, f"evaluate-{now_ms}", notes={MEASURED: now_ms})
    finally:
        last.unpersist()
    return written.rows
