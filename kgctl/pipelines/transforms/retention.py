"""How old and how large the logs of topics are, how fast they grow, and what will be deleted when.

Nothing reads the logs: offsets by time show how many records have which age, and sizes count in proportion to offsets.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kgctl.pipelines.schemas import topics as schemas
from kgctl.pipelines.transforms.times import known_ms

KEY = ("topic", "part")
DAY_MS = 86_400_000
_MINUTE_MS = 60_000
# A later time, or one before 1970, is no time: retention.ms may be anything up to 2^63.
_MOST_MS = 100 * 365 * DAY_MS
_HOUR_S, _DAY_S = 3600, 86_400
# Ages in seconds between which records are counted.
AGES_S = (0, _HOUR_S, 6 * _HOUR_S, _DAY_S, 3 * _DAY_S, 7 * _DAY_S, 30 * _DAY_S)
FACTS_DDL = "topic string, part int, cleanup_policy string, retention_ms bigint, retention_bytes bigint, bytes bigint, oldest_ms bigint"


def points(facts: DataFrame, now_ms: int) -> DataFrame:
    """(topic, part, at_ms): the times at which `retention` and `ages` need to know where each log ended."""
    now = f.lit(now_ms)
    ages = [f.lit(max(0, now_ms - 1000 * age)) for age in AGES_S]
    expiry = f.when(f.col("retention_ms") < now_ms, now - f.col("retention_ms"))
    times = f.array_compact(f.array(*ages, expiry, _within_a_day(now_ms)))
    return facts.select(*KEY, f.explode(f.array_distinct(times)).alias("at_ms"))


def retention(facts: DataFrame, ends: DataFrame, before: DataFrame, now_ms: int) -> DataFrame:
    """The rows of schemas.RETENTION, for partitions that still exist.

    `facts` is of FACTS_DDL; `ends` has schemas.LOG_ENDS for `points`; `before` is of schemas.RETENTION, from earlier times.
    """
    facts = facts.withColumn("oldest_ms", known_ms("oldest_ms"))
    rows = _with_bounds(facts, ends, now_ms)
    expiry = f.col("at_ms") == now_ms - f.col("retention_ms")
    soon = f.col("at_ms") == _within_a_day(now_ms)
    known = rows.join(_offsets(ends), list(KEY))
    counted = known.groupBy(*KEY).agg(
        f.max(f.when(expiry, f.col("offset"))).alias("_expired"),
        f.max(f.when(soon, f.col("offset"))).alias("_soon"),
        f.max(f.when(f.col("at_ms") == now_ms - DAY_MS, f.col("offset"))).alias("_day_ago"),
    )
    last = before.groupBy(*KEY).agg(f.max(f.struct("at", f.col("log_start").alias("start"))).alias("_before"))
    rows = rows.join(counted, list(KEY)).join(last, list(KEY), "left")
    age_ms = now_ms - f.col("oldest_ms")
    # least ignores null, and the age of an empty log is not known.
    span_ms = f.when(age_ms.isNotNull(), f.least(f.lit(DAY_MS), age_ms))
    since_ms = now_ms - f.unix_millis("_before.at")
    rows = rows.withColumns(
        {
            "expired_records": _between("log_start", "_expired"),
            "day_records": _between("log_start", "_soon"),
            "growth_records": f.when(
                span_ms >= _MINUTE_MS,
                (f.col("log_end") - f.greatest("_day_ago", "log_start")) * f.lit(float(DAY_MS)) / span_ms,
            ),
            # A log that starts earlier than before belongs to a new topic of this name, or the broker was killed before it had
            # saved the new start.
            "log_start_moved": f.when(
                f.col("log_start") >= f.col("_before.start"), f.col("log_start") - f.col("_before.start")
            ),
        }
    )
    rows = rows.withColumns(
        {
            "expired_bytes": _bytes_of("expired_records"),
            "day_bytes": _bytes_of("day_records"),
            "growth_bytes": _bytes_of("growth_records", "double"),
            "deleted_records": f.when(since_ms > 0, f.col("log_start_moved") * f.lit(float(DAY_MS)) / since_ms),
        }
    )
    by_time = f.when(f.col("retention_ms") < _MOST_MS, f.col("growth_bytes") * f.col("retention_ms") / DAY_MS)
    fills = (f.col("growth_bytes") > 0) & (by_time.isNull() | (by_time >= f.col("retention_bytes")))
    # greatest ignores null: without a limit there is no room that could be used up.
    room = f.when(f.col("retention_bytes").isNotNull(), f.greatest(f.col("retention_bytes") - f.col("bytes"), f.lit(0)))
    full_in_ms = f.when(fills, room / f.col("growth_bytes") * DAY_MS)
    next_ms = f.when(f.col("retention_ms") < _MOST_MS, f.col("oldest_ms") + f.col("retention_ms"))
    rows = rows.withColumns(
        {
            "at": f.timestamp_millis(f.lit(now_ms)),
            "oldest": f.timestamp_millis("oldest_ms"),
            "excess_bytes": f.when(
                f.col("bytes").isNotNull(), f.greatest(f.col("bytes") - f.col("retention_bytes"), f.lit(0))
            ),
            "next_expiry": f.timestamp_millis(next_ms),
            "size_limit_at": f.when(
                full_in_ms < _MOST_MS, f.timestamp_millis(now_ms + f.least(full_in_ms, f.lit(_MOST_MS)).cast("bigint"))
            ),
            "expected_bytes": f.when(
                f.col("growth_bytes").isNotNull(), f.least(by_time, f.col("retention_bytes").cast("double"))
            ),
        }
    )
    return rows.select(*schemas.RETENTION.column_names)


def ages(facts: DataFrame, ends: DataFrame, now_ms: int) -> DataFrame:
    """The rows of schemas.LOG_AGES: one for each age of which the partition has records."""
    spark = facts.sparkSession
    limits = [
        (young, old, now_ms - 1000 * young, None if old is None else max(0, now_ms - 1000 * old))
        for young, old in zip(AGES_S, (*AGES_S[1:], None), strict=True)
    ]
    ddl = "age_from_s bigint, age_to_s bigint, _to_ms bigint, _from_ms bigint"
    classes = f.broadcast(spark.createDataFrame(limits, ddl))
    offsets = _offsets(ends)
    begin = offsets.select(*KEY, f.col("at_ms").alias("_from_ms"), f.col("offset").alias("_begin"))
    end = offsets.select(*KEY, f.col("at_ms").alias("_to_ms"), f.col("offset").alias("_end"))
    rows = _with_bounds(facts, ends, now_ms).crossJoin(classes)
    rows = rows.join(begin, [*KEY, "_from_ms"], "left").join(end, [*KEY, "_to_ms"])
    rows = rows.withColumns(
        {
            "at": f.timestamp_millis(f.lit(now_ms)),
            "first_offset": f.greatest("log_start", f.coalesce("_begin", "log_start")),
            "end_offset": f.least("log_end", "_end"),
        }
    )
    rows = rows.where("first_offset < end_offset")
    rows = rows.withColumn("_size", f.col("records")).withColumn("records", f.expr("end_offset - first_offset"))
    rows = rows.withColumn("bytes", _share("records", "_size", "bigint"))
    return rows.select(*schemas.LOG_AGES.column_names)


def _within_a_day(now_ms: int) -> Column:
    """Records before this time exceed retention.ms a day from now; null without a limit."""
    return f.when(f.col("retention_ms") < now_ms, f.least(f.lit(now_ms), now_ms - f.col("retention_ms") + DAY_MS))


def _with_bounds(facts: DataFrame, ends: DataFrame, now_ms: int) -> DataFrame:
    """The facts of each partition with log_start, log_end and records."""
    now = ends.where(f.unix_millis("at") == now_ms).select(*KEY, "log_start", "log_end")
    return facts.join(now, list(KEY)).withColumn("records", f.greatest(f.expr("log_end - log_start"), f.lit(0)))


def _offsets(ends: DataFrame) -> DataFrame:
    return ends.select(*KEY, f.unix_millis("at").alias("at_ms"), f.col("log_end").alias("offset"))


def _between(start: str, end: str) -> Column:
    """Records between two offsets, of those that the log holds; null if `end` is."""
    inside = f.when(f.col(end).isNotNull(), f.least(end, "log_end"))
    return f.greatest(inside - f.col(start), f.when(f.col(end).isNotNull(), 0))


def _bytes_of(records: str, kind: str = "bigint") -> Column:
    return _share(records, "records", kind)


def _share(records: str, of: str, kind: str) -> Column:
    """Bytes of some records of a log, at the mean size of its records."""
    return f.when(f.col(of) > 0, f.col("bytes").cast("double") * f.col(records) / f.col(of)).cast(kind)
