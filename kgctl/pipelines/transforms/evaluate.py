"""A verdict per partition of a group: Burrow's five rules over its last commits.

The window is the last WINDOW commits of a partition, those since it was last deleted. `complete` is the share of it that
there is. The lag at a commit is the distance to the end of the log at that time: where `log_ends` has no point at the very
time, between its neighbours in a straight line; beyond the first and last points, as at these. In this order:

1. OK      there is no lag now, or there was none at some commit of the window
2. REWIND  a committed offset is below the one before it
3. STOP    the last commit is longer ago than the window is long
4. STALL   all commits are of the same offset
5. WARN    lag was never less than at the commit before; where it was, OK

UNKNOWN where the end of the log is not known, or no commit is. A single commit with lag is a STOP, as with Burrow: see `complete`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from kgctl.pipelines import schemas
from kgctl.pipelines.transforms.lag import KEY, behind, committed_at

WINDOW = 10


def evaluate(commits: DataFrame, log_ends: DataFrame, at: int) -> DataFrame:
    """The rows of schemas.HEALTH as of `at`, ms since 1970: one per partition that has commits then, or points in `log_ends`.

    `commits` is of its schema, `log_ends` has (group, topic, part, at, log_end); what is later than `at` does not count. A
    partition whose commit has been deleted has no row.
    """
    now = f.timestamp_millis(f.lit(at))
    seen = commits.withColumn("_ts", committed_at()).where(f.col("_ts") <= now)
    points = log_ends.where((f.col("at") <= now) & f.col("log_end").isNotNull())
    latest = points.groupBy(*KEY).agg(f.max_by("log_end", "at").alias("_now_end"))
    judged = _summed_up(_with_lags(_window(seen), points)).join(latest, [*KEY], "left")
    judged = judged.withColumns({"at": now, "now_lag": behind("_now_end", "last_offset")})
    verdict = _verdict()
    rows = judged.select(
        *KEY,
        "at",
        verdict["status"].alias("status"),
        (f.col("commits") / WINDOW).alias("complete"),
        f.greatest("last_lag", "now_lag").alias("lag"),
        _eta_s().alias("eta_s"),
        f.array(verdict["reason"]).alias("reasons"),
    )
    never_committed = latest.join(commits.select(*KEY).distinct(), [*KEY], "left_anti").select(
        *KEY,
        now.alias("at"),
        f.lit("UNKNOWN").alias("status"),
        f.lit(0.0).alias("complete"),
        f.lit(None).cast("bigint").alias("lag"),
        f.lit(None).cast("double").alias("eta_s"),
        f.array(f.lit("no commit is known")).alias("reasons"),
    )
    return rows.unionByName(never_committed).select(*schemas.HEALTH.column_names)


def _window(seen: DataFrame) -> DataFrame:
    """The last commits of each partition since it was last deleted: (group, topic, part, ts, log_offset, committed)."""
    newest = Window.partitionBy(*KEY).orderBy(f.desc("log_offset"))
    deleted = f.sum(f.col("tombstone").cast("int")).over(newest.rowsBetween(Window.unboundedPreceding, 0))
    rows = seen.withColumns({"_deleted": deleted, "_rank": f.row_number().over(newest)})
    kept = rows.where((f.col("_deleted") == 0) & (f.col("_rank") <= WINDOW))
    return kept.select(*KEY, f.col("_ts").alias("ts"), "log_offset", "committed")


def _with_lags(window: DataFrame, points: DataFrame) -> DataFrame:
    """The commits of the window with `lag`, null where there are no points of the partition."""
    point = f.struct(f.unix_micros("at").alias("us"), f.col("log_end").alias("log_end"))
    nothing = f.lit(None).cast("bigint")
    marks = points.select(
        *KEY,
        f.col("at").alias("ts"),
        nothing.alias("log_offset"),
        nothing.alias("committed"),
        point.alias("point"),
        f.lit(False).alias("is_commit"),
    )
    events = window.withColumns(
        {"point": f.lit(None).cast("struct<us: bigint, log_end: bigint>"), "is_commit": f.lit(True)}
    )
    together = Window.partitionBy(*KEY).orderBy("ts", "is_commit", "log_offset")
    rows = events.unionByName(marks).withColumns(
        {
            "_before": f.last("point", ignorenulls=True).over(together.rowsBetween(Window.unboundedPreceding, 0)),
            "_after": f.first("point", ignorenulls=True).over(together.rowsBetween(0, Window.unboundedFollowing)),
        }
    )
    return (
        rows.where("is_commit")
        .withColumn("_log_end", _between(f.col("_before"), f.col("_after"), f.unix_micros("ts")))
        .withColumn("lag", behind("_log_end", "committed"))
    )


def _between(before: Column, after: Column, us: Column) -> Column:
    share = (us - before["us"]) / (after["us"] - before["us"])
    gained = (after["log_end"].cast("double") - before["log_end"].cast("double")) * share
    return (
        f.when(before.isNull(), after["log_end"])
        .when(after.isNull() | (before["us"] == us), before["log_end"])
        .otherwise(before["log_end"] + f.floor(gained))
    )


def _summed_up(window: DataFrame) -> DataFrame:
    """One row per partition with what the rules ask."""
    in_order = Window.partitionBy(*KEY).orderBy("log_offset")
    rows = window.withColumns(
        {"_offset_before": f.lag("committed").over(in_order), "_lag_before": f.lag("lag").over(in_order)}
    )
    went_back = f.struct("log_offset", "_offset_before", "committed")
    return rows.groupBy(*KEY).agg(
        f.count("*").alias("commits"),
        f.min_by("ts", "log_offset").alias("first_ts"),
        f.max_by("ts", "log_offset").alias("last_ts"),
        f.max_by("committed", "log_offset").alias("last_offset"),
        f.min_by("lag", "log_offset").alias("first_lag"),
        f.max_by("lag", "log_offset").alias("last_lag"),
        f.max(f.when(f.col("lag") == 0, f.col("ts"))).alias("no_lag_ts"),
        f.max(f.when(f.col("committed") < f.col("_offset_before"), went_back)).alias("went_back"),
        f.coalesce(f.bool_or(f.col("committed") != f.col("_offset_before")), f.lit(False)).alias("moved"),
        f.coalesce(f.bool_or(f.col("lag") < f.col("_lag_before")), f.lit(False)).alias("fell"),
        f.bool_or(f.col("lag").isNull()).alias("lag_unknown"),
    )


def _eta_s() -> Column:
    """As fast as lag has shrunk since the first commit of the window."""
    shrunk = f.col("first_lag") - f.col("now_lag")
    seconds = (f.unix_micros("at") - f.unix_micros("first_ts")) / 1e6
    return f.when(f.col("now_lag") == 0, 0.0).when(shrunk > 0, f.col("now_lag") * seconds / shrunk)


def _verdict() -> Column:
    """struct<status string, reason string> of a summed-up partition with `now_lag`."""
    silent_us = f.unix_micros("at") - f.unix_micros("last_ts")
    window_us = f.unix_micros("last_ts") - f.unix_micros("first_ts")
    seconds = {name: f.format_number(us / 1e6, 1) for name, us in (("silent", silent_us), ("window", window_us))}
    commits = f.when(f.col("commits") == 1, f.lit("1 commit")).otherwise(f.format_string("%d commits", "commits"))
    unknown = f.col("lag_unknown") | f.col("now_lag").isNull()
    back = f.col("went_back")
    return (
        f.when(unknown, _said("UNKNOWN", f.lit("the end of the log is not known")))
        .when(f.col("now_lag") == 0, _said("OK", f.lit("no lag now")))
        .when(
            f.col("no_lag_ts").isNotNull(),
            _said("OK", f.concat(f.lit("no lag at the commit of "), f.date_format("no_lag_ts", "yyyy-MM-dd HH:mm:ss"))),
        )
        .when(
            back.isNotNull(),
            _said(
                "REWIND",
                f.format_string("the offset went back from %d to %d", back["_offset_before"], back["committed"]),
            ),
        )
        .when(
            silent_us > window_us,
            _said(
                "STOP",
                f.format_string(
                    "no commit for %s s; %s before that within %s s", seconds["silent"], commits, seconds["window"]
                ),
            ),
        )
        .when(
            ~f.col("moved"),
            _said("STALL", f.format_string("%s of the same offset %d, with lag", commits, f.col("last_offset"))),
        )
        .when(
            ~f.col("fell"),
            _said(
                "WARN",
                f.format_string("lag never fell in %s: from %d to %d", commits, f.col("first_lag"), f.col("last_lag")),
            ),
        )
        .otherwise(_said("OK", f.lit("lag fell within the window")))
    )


def _said(status: str, reason: Column) -> Column:
    return f.struct(f.lit(status).alias("status"), reason.alias("reason"))
