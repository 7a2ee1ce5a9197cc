"""The health of each partition of a group: Burrow's rules over its last commits.

The window is the last WINDOW commits of a partition since its commit was last deleted; `complete` is the share of the
window that exists. The lag at a commit is the distance to the end of the log at that time, interpolated linearly if
`log_ends` has no point at exactly that time, and taken from the first or last point outside of their range. The rules,
in this order (Burrow's term in parentheses):

1. OK       there is no lag now
2. STOPPED  the time since the last commit is longer than the window, and there was lag for RECENT_S (STOP)
3. OK       there was no lag at one of the commits
4. REWOUND  a committed offset is below the one before it (REWIND)
5. STALLED  all commits are of the same offset (STALL)
6. LAGGING  lag never fell from one commit to the next (WARN); if it did, OK

A consumer that had read everything when it died is STOPPED: its commits may be old. UNKNOWN if the end of the log is not
known, or there is no commit. As in Burrow, a single commit with lag for RECENT_S is STOPPED; `complete` shows how little
data the result is based on.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from kgctl.model.health import Health
from kgctl.pipelines.schemas.groups import HEALTH
from kgctl.pipelines.transforms.lag import KEY, behind, committed_at

WINDOW = 10
# A consumer that had no lag this short a time ago is not late with its next commit. Burrow: ten of its refreshes, 100 s.
RECENT_S = 100


def evaluate(commits: DataFrame, log_ends: DataFrame, at: int) -> DataFrame:
    """The rows of HEALTH at `at`, ms since 1970: one per partition with commits, or with points in `log_ends`.

    `commits` has its schema, `log_ends` has (group, topic, part, at, log_end), with a point RECENT_S before `at`. Later rows are ignored. A partition whose
    commit was deleted has no row.
    """
    now = f.timestamp_millis(f.lit(at))
    until_now = commits.withColumn("_ts", committed_at()).where(f.col("_ts") <= now)
    points = log_ends.where((f.col("at") <= now) & f.col("log_end").isNotNull())
    recent = f.col("at") >= f.timestamp_millis(f.lit(at - 1000 * RECENT_S))
    latest = points.groupBy(*KEY).agg(
        f.max_by("log_end", "at").alias("_now_end"), f.min(f.when(recent, f.col("log_end"))).alias("recent_end")
    )
    judged = _summarized(_with_lags(_window(until_now), points)).join(latest, [*KEY], "left")
    judged = judged.withColumns({"at": now, "now_lag": behind("_now_end", "last_offset")})
    health = _health()
    rows = judged.select(
        *KEY,
        "at",
        health["status"].alias("status"),
        (f.col("commits") / WINDOW).alias("complete"),
        f.greatest("last_lag", "now_lag").alias("lag"),
        f.when(health["status"] != str(Health.STOPPED), _eta_s()).alias("eta_s"),
        f.array(health["reason"]).alias("reasons"),
    )
    never_committed = latest.join(commits.select(*KEY).distinct(), [*KEY], "left_anti").select(
        *KEY,
        now.alias("at"),
        f.lit(str(Health.UNKNOWN)).alias("status"),
        f.lit(0.0).alias("complete"),
        f.lit(None).cast("bigint").alias("lag"),
        f.lit(None).cast("double").alias("eta_s"),
        f.array(f.lit("there is no commit")).alias("reasons"),
    )
    return rows.unionByName(never_committed).select(*HEALTH.column_names)


def _window(commits: DataFrame) -> DataFrame:
    """The last commits of each partition since it was last deleted: (group, topic, part, ts, log_offset, committed)."""
    newest = Window.partitionBy(*KEY).orderBy(f.desc("log_offset"))
    deleted = f.sum(f.col("tombstone").cast("int")).over(newest.rowsBetween(Window.unboundedPreceding, 0))
    rows = commits.withColumns({"_deleted": deleted, "_rank": f.row_number().over(newest)})
    last = rows.where((f.col("_deleted") == 0) & (f.col("_rank") <= WINDOW))
    return last.select(*KEY, f.col("_ts").alias("ts"), "log_offset", "committed")


def _with_lags(window: DataFrame, points: DataFrame) -> DataFrame:
    """The commits of the window with `lag`; null if the partition has no points."""
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


def _summarized(window: DataFrame) -> DataFrame:
    """One row per partition with the values that the rules need."""
    in_order = Window.partitionBy(*KEY).orderBy("log_offset")
    rows = window.withColumns(
        {"_offset_before": f.lag("committed").over(in_order), "_lag_before": f.lag("lag").over(in_order)}
    )
    rewound = f.struct("log_offset", "_offset_before", "committed")
    return rows.groupBy(*KEY).agg(
        f.count("*").alias("commits"),
        f.min_by("ts", "log_offset").alias("first_ts"),
        f.max_by("ts", "log_offset").alias("last_ts"),
        f.max_by("committed", "log_offset").alias("last_offset"),
        f.min_by("lag", "log_offset").alias("first_lag"),
        f.max_by("lag", "log_offset").alias("last_lag"),
        f.max(f.when(f.col("lag") == 0, f.col("ts"))).alias("no_lag_ts"),
        f.max(f.when(f.col("committed") < f.col("_offset_before"), rewound)).alias("rewound"),
        f.coalesce(f.bool_or(f.col("committed") != f.col("_offset_before")), f.lit(False)).alias("moved"),
        f.coalesce(f.bool_or(f.col("lag") < f.col("_lag_before")), f.lit(False)).alias("fell"),
        f.bool_or(f.col("lag").isNull()).alias("lag_unknown"),
    )


def _eta_s() -> Column:
    """Seconds at the rate at which lag has shrunk since the first commit of the window; null if it has not."""
    shrunk = f.col("first_lag") - f.col("now_lag")
    seconds = (f.unix_micros("at") - f.unix_micros("first_ts")) / 1e6
    return f.when(f.col("now_lag") == 0, 0.0).when(shrunk > 0, f.col("now_lag") * seconds / shrunk)


def _health() -> Column:
    """struct<status string, reason string> of a summarized partition with `now_lag`."""
    silent_us = f.unix_micros("at") - f.unix_micros("last_ts")
    window_us = f.unix_micros("last_ts") - f.unix_micros("first_ts")
    seconds = {name: f.format_number(us / 1e6, 1) for name, us in (("silent", silent_us), ("window", window_us))}
    commits = f.when(f.col("commits") == 1, f.lit("1 commit")).otherwise(f.format_string("%d commits", "commits"))
    unknown = f.col("lag_unknown") | f.col("now_lag").isNull()
    lagged = f.coalesce(f.col("recent_end") > f.col("last_offset"), f.lit(True))
    rewound = f.col("rewound")
    return (
        f.when(unknown, _health_of(Health.UNKNOWN, f.lit("the end of the log is not known")))
        .when(f.col("now_lag") == 0, _health_of(Health.OK, f.lit("no lag now")))
        .when(
            (silent_us > window_us) & lagged,
            _health_of(
                Health.STOPPED,
                f.when(
                    f.col("commits") == 1, f.format_string("no commit for %s s after a single one", seconds["silent"])
                ).otherwise(
                    f.format_string(
                        "no commit for %s s, after %s within %s s", seconds["silent"], commits, seconds["window"]
                    )
                ),
            ),
        )
        .when(
            f.col("no_lag_ts").isNotNull(),
            _health_of(
                Health.OK,
                f.concat(f.lit("no lag at the commit of "), f.date_format("no_lag_ts", "yyyy-MM-dd HH:mm:ss")),
            ),
        )
        .when(
            rewound.isNotNull(),
            _health_of(
                Health.REWOUND,
                f.format_string(
                    "the committed offset went back from %d to %d", rewound["_offset_before"], rewound["committed"]
                ),
            ),
        )
        .when(
            ~f.col("moved"),
            _health_of(
                Health.STALLED, f.format_string("lag, and %s of the same offset %d", commits, f.col("last_offset"))
            ),
        )
        .when(
            ~f.col("fell"),
            _health_of(
                Health.LAGGING,
                f.format_string("lag never fell in %s: from %d to %d", commits, f.col("first_lag"), f.col("last_lag")),
            ),
        )
        .otherwise(_health_of(Health.OK, f.lit("lag fell within the window")))
    )


def _health_of(status: Health, reason: Column) -> Column:
    return f.struct(f.lit(str(status)).alias("status"), reason.alias("reason"))
