"""The lag of each group at points in time: the last commit before a point against the end of the log at that point."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from kgctl.pipelines.schemas.groups import LAG

KEY = ("group", "topic", "part")


def lag(commits: DataFrame, log_ends: DataFrame, first_behind: DataFrame) -> DataFrame:
    """The rows of LAG: one per group and point of `log_ends` at which the group had a committed offset.

    `commits` and `log_ends` have their schemas; of a point that exists twice, the sampled one counts. `first_behind` has
    (topic, part, offset, behind_ts): when the first record at or after an offset was written. If it has no row for a
    committed offset, `lag_ms` is null unless there is no lag. Rates are null if the group had no committed offset at the
    point before, and negative if an offset went back.
    """
    before = Window.partitionBy(*KEY).orderBy("at")
    rows = _as_of(commits, _ends(log_ends))
    rows = rows.withColumn("lag", behind("log_end", "committed")).withColumns(
        {
            "_seconds": (f.unix_micros("at") - f.lag(f.unix_micros("at")).over(before)) / 1e6,
            "_committed": f.lag("committed").over(before),
            "_log_end": f.lag("log_end").over(before),
        }
    )
    produced = f.when(f.col("_committed").isNotNull(), _rate("log_end", "_log_end"))
    rows = rows.withColumns({"consume_rate": _rate("committed", "_committed"), "produce_rate": produced})
    rows = rows.where("committed is not null")
    looked_up = first_behind.groupBy("topic", "part", f.col("offset").alias("committed")).agg(
        f.min("behind_ts").alias("_behind_ts")
    )
    rows = rows.join(looked_up, ["topic", "part", "committed"], "left")
    waited_ms = f.unix_millis("at") - f.unix_millis("_behind_ts")
    gain = f.col("consume_rate") - f.col("produce_rate")
    eta_s = f.when(f.col("lag") == 0, 0.0).when(gain > 0, f.col("lag") / gain)
    rows = rows.withColumns(
        {"lag_ms": f.when((f.col("lag") == 0) | (waited_ms < 0), 0).otherwise(waited_ms), "eta_s": eta_s}
    )
    return rows.select(*LAG.column_names)


def behind(log_end: str, committed: str) -> Column:
    """Records between the two offsets, never below 0; null if the difference overflows."""
    return f.when(f.col(log_end) <= f.col(committed), 0).otherwise(f.try_subtract(f.col(log_end), f.col(committed)))


def committed_at() -> Column:
    """When a row of COMMITS took effect; a tombstone has only the timestamp of its record."""
    return f.coalesce("commit_ts", "log_ts")


def _ends(log_ends: DataFrame) -> DataFrame:
    sampled_first = f.struct(f.col("source") == "sampled", f.col("log_end").alias("log_end"))
    return log_ends.groupBy("topic", "part", "at").agg(f.max(sampled_first)["log_end"].alias("log_end"))


def _as_of(commits: DataFrame, ends: DataFrame) -> DataFrame:
    """(group, topic, part, at, committed, log_end), `committed` null where there was none.

    Spark has no as-of join, so points and commits are sorted together.
    """
    nothing = f.lit(None).cast("bigint")
    events = commits.select(
        *KEY,
        committed_at().alias("at"),
        "log_offset",
        f.struct("committed").alias("commit"),
        nothing.alias("log_end"),
        f.lit(False).alias("is_point"),
    )
    points = (
        commits.select(*KEY)
        .distinct()
        .join(ends, ["topic", "part"])
        .select(
            *KEY,
            "at",
            nothing.alias("log_offset"),
            f.lit(None).cast("struct<committed: bigint>").alias("commit"),
            "log_end",
            f.lit(True).alias("is_point"),
        )
    )
    # A commit at exactly the time of a point counts.
    until_now = (
        Window.partitionBy(*KEY).orderBy("at", "is_point", "log_offset").rowsBetween(Window.unboundedPreceding, 0)
    )
    rows = events.unionByName(points).withColumn("_last", f.last("commit", ignorenulls=True).over(until_now))
    return rows.where("is_point").select(*KEY, "at", f.col("_last.committed").alias("committed"), "log_end")


def _rate(now: str, before: str) -> Column:
    return (f.col(now).cast("double") - f.col(before).cast("double")) / f.col("_seconds")
