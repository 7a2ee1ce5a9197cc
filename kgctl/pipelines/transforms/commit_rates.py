"""How often groups commit, and what the commits move, in windows of time."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kgctl.pipelines.schemas.group_facts import COMMIT_RATES
from kgctl.pipelines.transforms.lag import KEY, committed_at
from kgctl.pipelines.transforms.windows import between, window

PLACE_DDL = "log_partition int, log_offset bigint, log_ts timestamp"
_WINDOW = ("w_start", "w_end")


def commit_rates(commits: DataFrame, places: DataFrame, begin_ms: int, until_ms: int, step_ms: int) -> DataFrame:
    """The rows of COMMIT_RATES for the times from `begin_ms` to before `until_ms`.

    `commits` has its schema, with all commits before `until_ms`: each is compared with the one before it in the log. `places`
    has PLACE_DDL, a row for every record of __consumer_offsets that is left. Windows begin at multiples of `step_ms`; the first
    and the last one are shorter if `begin_ms` and `until_ms` are not such multiples.
    """
    in_log = Window.partitionBy(*KEY).orderBy("log_offset")
    before = f.lag(f.struct("committed", "_ts")).over(in_log)
    rows = (
        commits.withColumn("_ts", committed_at())
        .withColumn("_before", before)
        .where(between("_ts", begin_ms, until_ms))
    )
    # A commit after a deletion is a first one.
    is_next = ~f.col("tombstone") & f.col("_before.committed").isNotNull()
    rows = rows.withColumns(
        {
            **window("_ts", begin_ms, until_ms, step_ms),
            "_moved": f.when(is_next, f.try_subtract(f.col("committed"), f.col("_before.committed"))),
            "_gap_ms": f.when(is_next, f.unix_millis("_ts") - f.unix_millis("_before._ts")),
            "_offset": f.when(~f.col("tombstone"), f.col("committed")),
        }
    )
    moved, offset = f.col("_moved"), f.col("_offset")
    seconds = (f.unix_millis("w_end") - f.unix_millis("w_start")) / 1000
    made = rows.groupBy(*KEY, "log_partition", *_WINDOW).agg(
        f.count(offset).alias("commits"),
        f.min_by(offset, f.when(offset.isNotNull(), f.col("log_offset"))).alias("first"),
        f.max_by(offset, f.when(offset.isNotNull(), f.col("log_offset"))).alias("last"),
        f.sum(f.when(moved > 0, moved).when(moved <= 0, 0)).alias("advanced"),
        f.count_if(moved < 0).alias("rewinds"),
        f.coalesce(f.sum(f.when(moved < 0, -moved)), f.lit(0)).alias("rewound"),
        (f.count_if(moved == 0) / f.nullif(f.count(moved), f.lit(0))).alias("unmoved_share"),
        f.max("_gap_ms").alias("gap_max_ms"),
        f.median("_gap_ms").alias("gap_median_ms"),
        f.count_if("tombstone").alias("deletions"),
    )
    made = made.withColumn("rate", f.col("commits") / seconds)
    complete = _complete(places, begin_ms, until_ms, step_ms)
    return made.join(complete, ["log_partition", *_WINDOW], "left").select(*COMMIT_RATES.column_names)


def _complete(places: DataFrame, begin_ms: int, until_ms: int, step_ms: int) -> DataFrame:
    """(log_partition, w_start, w_end, complete): records that are gone leave a gap before the next one that is left."""
    before = f.lag("log_offset").over(Window.partitionBy("log_partition").orderBy("log_offset"))
    rows = places.withColumn("_gone", f.col("log_offset") - before - 1).where(between("log_ts", begin_ms, until_ms))
    rows = rows.withColumns(window("log_ts", begin_ms, until_ms, step_ms))
    return rows.groupBy("log_partition", *_WINDOW).agg(
        (f.count("_gone") / f.nullif(f.count("_gone") + f.sum("_gone"), f.lit(0))).alias("complete")
    )
