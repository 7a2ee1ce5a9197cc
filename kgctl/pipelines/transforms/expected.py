"""What each group does, bucket by bucket, against what is usual for it at this time: lag, commit rate and rebalances.

The baseline of a bucket is made of earlier ones of the same group. The first of these that has enough of them counts:

hour of week   the same hour of the week, in at least 3 of the last 6 weeks
hour of day    the same hour, on at least 3 of the last 14 days
recent         the last 288 buckets, at least 24 of them

`low` and `high` are the medians of the lowest and of the highest value of each of these hours, so that what happens each time
within an hour is usual; of recent buckets, they are one and a half times the distance of the quartiles beyond the quartiles
(Tukey's fences), and at least 0. `spread` is 1.4826 times the median absolute
deviation, which for a normal distribution is its standard deviation, and at least what does not count: a tenth of the median, a
quarter of the distance from low to high, for counts the square root of the usual count, and the `floor` of an observation.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from kgctl.pipelines.schemas.group_facts import EXPECTED
from kgctl.pipelines.transforms.windows import between
from kgctl.pipelines.transforms.wire import bound

LAG, COMMIT_RATE, REBALANCES = "lag", "commit rate", "rebalances"
WEEK, DAY, RECENT = "hour of week", "hour of day", "recent"
WEEKS, DAYS, LEAST = 6, 14, 3
RECENT_BUCKETS, LEAST_BUCKETS = 288, 24
FENCE = 1.5
HOUR_MS = 3_600_000
# How far back baselines reach.
REACH_MS = WEEKS * 168 * HOUR_MS + HOUR_MS
# Less than these is no unusual lag: records, and seconds of what is produced.
LAG_FLOOR, LAG_FLOOR_S = 10.0, 10.0
# A group without any sign of life for a day is not expected to do anything.
SILENT_MS = 24 * HOUR_MS
# Below this share of complete records, commits cannot be counted.
_COMPLETE = 0.5
_DEVIATION = 1.4826

OBSERVED_DDL = "`group` string, metric string, at timestamp, value double, floor double"
_SERIES = ("group", "metric")


def observed(
    lag: DataFrame, commits: DataFrame, rebalances: DataFrame, begin_ms: int, until_ms: int, bucket_ms: int
) -> DataFrame:
    """The rows of OBSERVED_DDL in buckets from `begin_ms` to before `until_ms`, both multiples of `bucket_ms`.

    `lag`, `commits` and `rebalances` are f_lag, f_commit and f_rebalance. A bucket in which a group has no commits or no
    rebalances counts as 0 while the group is alive; one whose lag or commits are not known has no row.
    """
    alive = _alive(commits, rebalances, begin_ms, until_ms, bucket_ms)
    return (
        _lag(lag.where(between("at", begin_ms, until_ms)), bucket_ms)
        .unionByName(_commit_rate(commits, alive, begin_ms, until_ms, bucket_ms))
        .unionByName(_rebalances(rebalances.where(between("ended", begin_ms, until_ms)), alive, bucket_ms))
    )


def expected(observed: DataFrame, history: DataFrame, bucket_ms: int) -> DataFrame:
    """The rows of EXPECTED for `observed`. `history` are those of earlier buckets, at least of the last REACH_MS."""
    new = observed.withColumn("_hour", _hour("at"))
    values = history.select(*_SERIES, "at", "value").unionByName(new.select(*_SERIES, "at", "value"))
    baselines = _baselines(values, new.select(*_SERIES, "_hour").distinct())
    rows = new.join(baselines, [*_SERIES, "_hour"], "left")
    recent = _recent(values, rows.where("baseline is null").select(*_SERIES, "at"), bucket_ms)
    rows = rows.join(recent, [*_SERIES, "at"], "left").withColumn("baseline", f.coalesce("baseline", "_recent"))
    rows = rows.select(*_SERIES, "at", "value", "floor", "baseline.*")
    rows = rows.withColumn("spread", _spread(bucket_ms)).withColumn("score", _score())
    rows = _without_harmless_drops(rows)
    until = f.timestamp_millis(f.unix_millis("at") + bucket_ms)
    return rows.withColumn("until", until).select(*EXPECTED.column_names)


# ---- observations -----------------------------------------------------------------------------------------------


def _lag(lag: DataFrame, bucket_ms: int) -> DataFrame:
    points = lag.groupBy("group", f.col("at").alias("_point")).agg(
        f.sum("lag").cast("double").alias("_lag"), f.sum("produce_rate").alias("_rate")
    )
    rows = points.groupBy("group", _bucket("_point", bucket_ms).alias("at")).agg(
        f.max("_lag").alias("value"), f.avg("_rate").alias("_rate")
    )
    floor = f.greatest(f.lit(LAG_FLOOR), LAG_FLOOR_S * f.col("_rate"))
    return _observations(rows.where("value is not null"), LAG, f.col("value"), floor)


def _commit_rate(commits: DataFrame, alive: DataFrame, begin_ms: int, until_ms: int, bucket_ms: int) -> DataFrame:
    known_from = commits.where(f.col("complete") < _COMPLETE).groupBy("group").agg(f.max("w_end").alias("_from"))
    counted = commits.where(between("w_start", begin_ms, until_ms))
    counts = counted.groupBy("group", _bucket("w_start", bucket_ms).alias("at")).agg(f.sum("commits").alias("_count"))
    committing = commits.select("group").distinct()
    rows = alive.join(committing, "group").join(counts, ["group", "at"], "left").join(known_from, "group", "left")
    rows = rows.where("_from is null or at >= _from")
    seconds = bucket_ms / 1000
    return _observations(rows, COMMIT_RATE, f.coalesce("_count", f.lit(0)) / seconds, f.lit(1 / seconds))


def _rebalances(rebalances: DataFrame, alive: DataFrame, bucket_ms: int) -> DataFrame:
    counts = rebalances.groupBy("group", _bucket("ended", bucket_ms).alias("at")).agg(f.count("*").alias("_count"))
    rows = alive.join(counts, ["group", "at"], "left")
    return _observations(rows, REBALANCES, f.coalesce("_count", f.lit(0)).cast("double"), f.lit(1.0))


def _alive(commits: DataFrame, rebalances: DataFrame, begin_ms: int, until_ms: int, bucket_ms: int) -> DataFrame:
    """(group, at): the buckets from the first sign of a group to a day after its last one so far."""
    signs = commits.select("group", f.col("w_start").alias("_sign"))
    signs = signs.unionByName(rebalances.select("group", f.col("ended").alias("_sign")))
    signs = signs.where(f.unix_millis("_sign") < until_ms).withColumn(
        "_sign", f.unix_millis(_bucket("_sign", bucket_ms))
    )
    # The silence after each sign counts up to a day; a later sign does not change what an earlier run has seen.
    following = f.lead("_sign").over(Window.partitionBy("group").orderBy("_sign"))
    spans = signs.distinct().withColumn(
        "_end", f.least(f.coalesce(following, f.lit(until_ms)), f.col("_sign") + SILENT_MS)
    )
    spans = spans.where(f.col("_end") > begin_ms)
    first = f.greatest("_sign", f.lit(begin_ms))
    buckets = f.sequence(first, f.col("_end") - 1, f.lit(bucket_ms))
    return spans.select("group", f.explode(buckets).alias("_at")).select("group", f.timestamp_millis("_at").alias("at"))


def _observations(rows: DataFrame, metric: str, value: Column, floor: Column) -> DataFrame:
    return rows.select(
        "group", f.lit(metric).alias("metric"), "at", value.cast("double").alias("value"), floor.alias("floor")
    )


# ---- baselines --------------------------------------------------------------------------------------------------


def _baselines(values: DataFrame, wanted: DataFrame) -> DataFrame:
    """(group, metric, _hour, baseline) for the wanted hours that have enough weeks or days before them."""
    hours = values.groupBy(*_SERIES, _hour("at").alias("_then")).agg(
        f.collect_list("value").alias("_values"), f.min("value").alias("_low"), f.max("value").alias("_high")
    )
    back = [(1, WEEK, 168 * weeks) for weeks in range(1, WEEKS + 1)] + [
        (2, DAY, 24 * days) for days in range(1, DAYS + 1)
    ]
    choices = f.array(
        *(f.struct(f.lit(r).alias("rank"), f.lit(b).alias("basis"), f.lit(h).alias("back")) for r, b, h in back)
    )
    looked = wanted.withColumn("_choice", f.explode(choices)).withColumn(
        "_then", f.col("_hour") - f.col("_choice.back")
    )
    found = looked.join(hours, [*_SERIES, "_then"]).groupBy(*_SERIES, "_hour", "_choice.rank", "_choice.basis")
    found = found.agg(
        f.count("*").alias("_hours"),
        f.median("_low").alias("_low"),
        f.median("_high").alias("_high"),
        f.flatten(f.collect_list("_values")).alias("_values"),
    ).where(f.col("_hours") >= LEAST)
    best = found.groupBy(*_SERIES, "_hour").agg(
        f.min_by(f.struct("basis", "_low", "_high", "_values"), "rank").alias("_best")
    )
    best = best.select(*_SERIES, "_hour", "_best.*")
    return best.select(
        *_SERIES, "_hour", _baseline("_values", f.col("_low"), f.col("_high"), f.col("basis")).alias("baseline")
    )


def _recent(values: DataFrame, needed: DataFrame, bucket_ms: int) -> DataFrame:
    """(group, metric, at, _recent) for the needed buckets with enough of them before."""
    reach_ms = RECENT_BUCKETS * bucket_ms
    bounds = needed.groupBy(*_SERIES).agg(f.min("at").alias("_first"), f.max("at").alias("_last"))
    rows = values.join(bounds, [*_SERIES])
    near = rows.where((f.unix_millis("at") >= f.unix_millis("_first") - reach_ms) & (f.col("at") <= f.col("_last")))
    before = Window.partitionBy(*_SERIES).orderBy("_ms").rangeBetween(-reach_ms, -1)
    found = near.withColumn("_ms", f.unix_millis("at")).withColumn("_values", f.collect_list("value").over(before))
    found = found.join(needed, [*_SERIES, "at"], "left_semi").where(f.size("_values") >= LEAST_BUCKETS)
    found = found.withColumn("_values", f.sort_array("_values"))
    first, third = (_ranked(f.col("_values"), share) for share in (0.25, 0.75))
    low, high = f.greatest(f.lit(0.0), first - FENCE * (third - first)), third + FENCE * (third - first)
    return found.select(*_SERIES, "at", _baseline("_values", low, high, f.lit(RECENT)).alias("_recent"))


def _baseline(values: str, low: Column, high: Column, basis: Column) -> Column:
    """struct<basis, observations, median, low, high, _deviation>."""

    def around(ordered: Column, median: Column) -> Column:
        deviations = f.sort_array(f.transform(ordered, lambda value: f.abs(value - median)))
        return f.struct(median.alias("median"), _ranked(deviations, 0.5).alias("_deviation"))

    middle = bound(
        f.sort_array(f.col(values)),
        lambda ordered: bound(_ranked(ordered, 0.5), lambda median: around(ordered, median)),
    )
    return f.struct(
        basis.alias("basis"),
        f.size(values).alias("observations"),
        middle["median"].alias("median"),
        low.alias("low"),
        high.alias("high"),
        middle["_deviation"].alias("_deviation"),
    )


def _ranked(ordered: Column, share: float) -> Column:
    """The value at a share of the sorted array: of the two nearest, the lower one."""
    return f.element_at(ordered, (f.floor((f.size(ordered) - 1) * f.lit(share)) + 1).cast("int"))


def _spread(bucket_ms: int) -> Column:
    median, metric = f.col("median"), f.col("metric")
    per_s = bucket_ms / 1000
    counted = f.when(metric == COMMIT_RATE, f.sqrt(median * per_s) / per_s).when(metric == REBALANCES, f.sqrt(median))
    return f.when(
        f.col("basis").isNotNull(),
        f.greatest(
            _DEVIATION * f.col("_deviation"), 0.1 * median, (f.col("high") - f.col("low")) / 4, f.col("floor"), counted
        ),
    )


def _score() -> Column:
    value, spread = f.col("value"), f.col("spread")
    drop = f.when(f.col("metric") == COMMIT_RATE, (value - f.col("low")) / spread).otherwise(0.0)
    score = f.when(value > f.col("high"), (value - f.col("high")) / spread).when(value < f.col("low"), drop)
    return f.when(f.col("basis").isNotNull(), score.otherwise(0.0))


def _without_harmless_drops(rows: DataFrame) -> DataFrame:
    """A group that commits less than usual has nothing to read, unless its lag is above the usual or not known."""
    lags = rows.where(f.col("metric") == LAG).select("group", "at", f.col("score").alias("_lag_score"))
    harmless = (f.col("score") < 0) & (f.col("_lag_score") <= 0)
    rows = rows.join(lags, ["group", "at"], "left")
    return rows.withColumn("score", f.when(f.coalesce(harmless, f.lit(False)), 0.0).otherwise(f.col("score")))


def _bucket(name: str, bucket_ms: int) -> Column:
    return f.timestamp_millis(f.unix_millis(name) - f.pmod(f.unix_millis(name), f.lit(bucket_ms)))


def _hour(name: str) -> Column:
    return f.floor(f.unix_millis(name) / HOUR_MS)
