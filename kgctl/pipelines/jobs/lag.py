"""lag: committed offsets against log ends, at points in time back to the first commit."""

from __future__ import annotations

import time

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.commits import user_commits
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.grid import end_of_points, points
from kgctl.pipelines.jobs.lookups import (
    BEHIND_DDL,
    CLIENT_ID,
    FirstBehind,
    LogEndLookup,
    ends_at,
    first_behind,
    points_of,
)
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.groups import LAG, LOG_ENDS
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.transforms import lag

LAST_POINT = "last_point_ms"
TASKS = 16
# Each lookup fetches one batch; a hundred thousand take about a minute.
MAX_LOOKUPS = 50_000


def run(run: RunContext, job: Job) -> int:
    """Rows written to f_lag. Each run continues after the last point of the one before."""
    settings, step_ms = run.settings, round(run.settings.step_s * 1000)
    now_ms = run.inputs_complete_until(job) or time.time_ns() // 1_000_000
    last_point, asked = _last_point(run, LAG), _last_point(run, LOG_ENDS)
    until_ms = end_of_points(last_point, now_ms, step_ms, follow=settings.follow)
    if last_point is not None and max(until_ms, asked or 0) <= last_point:
        return 0
    commits = user_commits(run)
    first = commits.where("not tombstone").agg(f.min(f.unix_millis("commit_ts")).alias("first")).first()
    if first is None or first["first"] is None:
        return 0
    written = 0
    if asked is not None and (last_point is None or asked > last_point):
        # An earlier run ended between its two tables.
        written = _write(run, job, commits, run.read(LOG_ENDS).where(_after(last_point)), last_point, asked)
        last_point = asked
    at = points(int(first["first"]), last_point, until_ms, step_ms)
    if not at:
        return written
    partitions = commits.select("topic", "part").distinct()
    lookup = LogEndLookup(settings.connection(CLIENT_ID), now_ms)
    return written + _write(run, job, commits, ends_at(points_of(partitions, at, TASKS), lookup), last_point, at[-1])


def _write(run: RunContext, job: Job, commits: DataFrame, ends: DataFrame, last_point: int | None, until: int) -> int:
    """Write `ends`, the log ends at points after `last_point` up to `until`, and lag there. Rows written to f_lag."""
    ends = ends.persist()
    # The rates at the first new point need the point before it.
    before = run.read(LOG_ENDS).where("false" if last_point is None else f.unix_millis("at") == f.lit(last_point))
    without_times = lag.lag(commits, before.unionByName(ends), run.spark.createDataFrame([], BEHIND_DDL)).persist()
    try:
        rows = lag.lag(commits, before.unionByName(ends), _first_behind(run, job, without_times))
        batch, notes = f"lag-{until}", {LAST_POINT: until}
        run.write(LOG_ENDS, ends, batch, notes)
        return run.write(LAG, rows.where(_after(last_point)), batch, notes).rows
    finally:
        without_times.unpersist()
        ends.unpersist()


def _after(point: int | None) -> Column:
    return f.lit(True) if point is None else f.unix_millis("at") > f.lit(point)


def _first_behind(run: RunContext, job: Job, known: DataFrame) -> DataFrame:
    wanted = known.where("lag > 0").select("topic", "part", f.col("committed").alias("offset"), "at")
    each = wanted.groupBy("topic", "part", "offset").agg(f.max("at").alias("at"))
    count = each.count()
    if count > MAX_LOOKUPS:
        text = f"lag in time is computed for the newest {MAX_LOOKUPS} of {count} positions only"
        run.emit(Progress("note", text, job=job.name))
        each = each.orderBy(f.desc("at")).limit(MAX_LOOKUPS)
    tasks = max(1, min(TASKS, count // 500 + 1))
    lookup = FirstBehind(run.settings.connection(CLIENT_ID))
    return first_behind(each.repartition(tasks, "topic", "part"), lookup)


def _last_point(run: RunContext, table: Table) -> int | None:
    last = open_table(run.settings.table_dir(table.name)).state().notes.get(LAST_POINT)
    return None if last is None else int(last)
