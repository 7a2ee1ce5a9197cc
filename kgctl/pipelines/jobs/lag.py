"""lag: committed offsets against the ends of the logs, at points in time that reach back to the first commit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kgctl.pipelines import schemas
from kgctl.pipelines.jobs.committed import commits_of_people
from kgctl.pipelines.jobs.grid import points
from kgctl.pipelines.jobs.lookups import BEHIND_DDL, Ends, FirstBehind, ends_at, first_behind, points_of
from kgctl.pipelines.jobs.reached import reached
from kgctl.pipelines.settings import Progress
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.pipelines.tables.spark import read_table, write_batch
from kgctl.pipelines.transforms import lag

if TYPE_CHECKING:
    from kgctl.pipelines.jobs.run import Run

TOLD_UNTIL = "told_until_ms"
TASKS = 16
# Each is a Fetch of one batch; a hundred thousand of them are a matter of a minute.
MOST_LOOKUPS = 50_000


def run(run: Run) -> int:
    """Rows written to f_lag; each run goes on after the last point of the one before."""
    settings = run.settings
    now_ms = reached(settings) or time.time_ns() // 1_000_000
    commits = commits_of_people(run)
    first = commits.where("not tombstone").agg(f.min(f.unix_millis("commit_ts")).alias("first")).first()
    if first is None or first["first"] is None:
        return 0
    told_until = _told_until(run)
    at = points(int(first["first"]), told_until, now_ms, round(settings.step_s * 1000))
    if not at:
        return 0
    partitions = commits.select("topic", "part").distinct()
    ends = ends_at(points_of(partitions, at, TASKS), Ends(settings.bootstrap, now_ms, settings.timeout_s)).persist()
    before = read_table(run.spark, settings.table_dir(schemas.LOG_ENDS.name), schemas.LOG_ENDS)
    before = before.where(f.unix_millis("at") == f.lit(told_until)) if told_until is not None else before.where("false")
    known = lag.lag(commits, before.unionByName(ends), run.spark.createDataFrame([], BEHIND_DDL)).persist()
    try:
        looked_up = _first_behind(run, known)
        rows = lag.lag(commits, before.unionByName(ends), looked_up)
        if told_until is not None:
            rows = rows.where(f.unix_millis("at") > f.lit(told_until))
        batch, notes = f"lag-{at[-1]}", {TOLD_UNTIL: at[-1]}
        write_batch(ends, settings.table_dir(schemas.LOG_ENDS.name), batch, schemas.LOG_ENDS, notes=notes)
        written = write_batch(rows, settings.table_dir(schemas.LAG.name), batch, schemas.LAG, notes=notes)
    finally:
        known.unpersist()
        ends.unpersist()
    return written.rows


def _first_behind(run: Run, known: DataFrame) -> DataFrame:
    wanted = known.where("lag > 0").select("topic", "part", f.col("committed").alias("offset"), "at")
    each = wanted.groupBy("topic", "part", "offset").agg(f.max("at").alias("at"))
    count = each.count()
    if count > MOST_LOOKUPS:
        run.emit(
            Progress("note", f"lag in time is looked up for the newest {MOST_LOOKUPS} of {count} positions", job="lag")
        )
        each = each.orderBy(f.desc("at")).limit(MOST_LOOKUPS)
    tasks = max(1, min(TASKS, count // 500 + 1))
    look = FirstBehind(run.settings.bootstrap, run.settings.timeout_s)
    return first_behind(each.repartition(tasks, "topic", "part"), look)


def _told_until(run: Run) -> int | None:
    """Of f_lag, which is written last: what a broken run has told of log_ends alone is told again, under the same points."""
    told = [batch.notes.get(TOLD_UNTIL) for batch in TableFolder(run.settings.table_dir(schemas.LAG.name)).batches()]
    return max((int(one) for one in told if one is not None), default=None)
