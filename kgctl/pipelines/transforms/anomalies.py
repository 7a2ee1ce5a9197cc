"""Anomalies: when what a group does left its usual range for a while, and when it was back.

An anomaly starts with the third bucket in a row whose score is ENTER or more beyond the range, on the same side. It ends with the
third bucket in a row that is back: within LEAVE spreads of the range that was usual when it started, or of the present one if that
is of weeks or days. So an incident does not become usual while it lasts; after a week it does, whatever the range.
It also ends when there was no bucket for SILENT_MS: the group is deleted, or does nothing any more. Its event has no value.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kgctl.pipelines.schemas.group_facts import ANOMALIES
from kgctl.pipelines.transforms.expected import COMMIT_RATE, DAY, LAG, SILENT_MS, WEEK

ENTER, LEAVE, BUCKETS = 4.0, 1.0, 3
# Buckets without data between two that count as in a row, at most.
GAP_BUCKETS = 12
STARTED, ENDED = "started", "ended"
_FORGOTTEN_MS = 7 * 24 * 3_600_000
_SERIES = ("group", "metric")
_RANGE = ("median", "low", "high", "spread", "basis")
_ROW = ("at", "until", "value", "score", *_RANGE)
_USUAL_DDL = "struct<median: double, low: double, high: double, spread: double, basis: string>"
_FOUND_DDL = f"struct<event: string, at: timestamp, since: timestamp, ended: timestamp, value: double, sign: double, usual: {_USUAL_DDL}>"
_STATE_DDL = (
    f"struct<is_open: boolean, since: timestamp, sign: double, usual: {_USUAL_DDL}, beyond: int, back: int, "
    f"begin: timestamp, until: timestamp, found: array<{_FOUND_DDL}>>"
)


def anomalies(expected: DataFrame, history: DataFrame, before: DataFrame, until_ms: int) -> DataFrame:
    """The rows of ANOMALIES that `expected`, the buckets up to `until_ms`, leads to. The tables have the schemas of their names.

    `history` has the rows of EXPECTED before those, at least since the open anomalies started. `before` has the earlier rows of
    ANOMALIES.
    """
    last = before.groupBy(*_SERIES).agg(
        f.max_by(f.struct(*(c for c in before.columns if c not in _SERIES)), "at").alias("last")
    )
    rows = expected.select(*_SERIES, *_ROW, f.lit(True).alias("is_new"))
    older = history.select(*_SERIES, *_ROW, f.lit(False).alias("is_new"))
    first = expected.groupBy(*_SERIES).agg(f.min("at").alias("_first"))
    # As far back as buckets in a row can have begun.
    reach = (BUCKETS - 1) * (GAP_BUCKETS + 1) * _length(f.col("at"), f.col("until"))
    near = f.unix_millis("at") >= f.unix_millis("_first") - reach
    older = older.join(first, [*_SERIES]).where(near).drop("_first")
    series = (
        rows.unionByName(older)
        .groupBy(*_SERIES)
        .agg(f.sort_array(f.collect_list(f.struct(*_ROW, "is_new"))).alias("rows"))
    )
    # Series without new buckets count only while an anomaly is open.
    series = series.join(last, [*_SERIES], "full").where(f.col("rows").isNotNull() | (f.col("last.event") == STARTED))
    series = series.join(history.groupBy(*_SERIES).agg(f.max("until").alias("seen")), [*_SERIES], "left")
    rows_since = f.filter("rows", lambda row: f.col("last").isNull() | (row["at"] >= f.col("last.at")))
    rows_since = f.coalesce(rows_since, f.array().cast(series.schema["rows"].dataType))
    seed = _seed(f.col("last"), f.greatest("last.at", "seen"))
    end = f.timestamp_millis(f.lit(until_ms))
    state = f.aggregate(rows_since, seed, _next, lambda state: _found_until(state, end))
    found = series.select(*_SERIES, f.explode(state).alias("found"), f.col("last.worst").alias("known"))
    found = found.select(*_SERIES, "found.*", "known")
    rows = _with_worst(found, expected.unionByName(history.select(*expected.columns)))
    return rows.withColumn("reason", _reason()).select(*ANOMALIES.column_names)


def _seed(last: Column, seen: Column) -> Column:
    """`seen`: the end of the last bucket that is known."""
    is_open = f.coalesce(last["event"] == STARTED, f.lit(False))
    usual = f.struct(*(last[name].alias(name) for name in _RANGE))
    return f.struct(
        is_open.alias("is_open"),
        f.when(is_open, last["since"]).alias("since"),
        f.when(is_open, f.signum(last["score"])).alias("sign"),
        f.when(is_open, usual).alias("usual"),
        f.lit(0).alias("beyond"),
        f.lit(0).alias("back"),
        f.lit(None).cast("timestamp").alias("begin"),
        seen.alias("until"),
        f.array().alias("found"),
    ).cast(_STATE_DDL)


def _next(state: Column, row: Column) -> Column:
    stays_open = state["is_open"] & ~_is_silent(state, row["at"])
    found = _found_until(state, row["at"])
    return f.when(stays_open, _while_open(state, row)).otherwise(_while_usual(state, row, found)).cast(_STATE_DDL)


def _is_silent(state: Column, at: Column) -> Column:
    """Whether a bucket at this time would be the first one after a long silence."""
    return f.coalesce(f.unix_millis(at) - f.unix_millis(state["until"]) >= SILENT_MS, f.lit(False))


def _found_until(state: Column, at: Column) -> Column:
    """What was found, if there is no further bucket before `at`: a long silence ends an open anomaly."""
    end = f.timestamp_millis(f.unix_millis(state["until"]) + SILENT_MS)
    event = _event(ENDED, end, f.lit(None), state["since"], state["until"], state["sign"], state["usual"])
    return f.when(state["is_open"] & _is_silent(state, at), f.array_append(state["found"], event)).otherwise(
        state["found"]
    )


def _while_usual(state: Column, row: Column, found: Column) -> Column:
    """`found`: what was found before the row. An anomaly that a silence ended has no buckets beyond the range."""
    sign = f.signum(row["score"])
    is_beyond = f.coalesce(f.abs(row["score"]) >= ENTER, f.lit(False))
    follows = (state["beyond"] > 0) & (state["sign"] == sign) & _is_next(state, row)
    beyond = f.when(~is_beyond, 0).when(follows, state["beyond"] + 1).otherwise(1)
    begin = f.when(is_beyond, f.when(follows, state["begin"]).otherwise(row["at"]))
    # The range before the first of these buckets is the usual one.
    usual = f.when(is_beyond, f.when(follows, state["usual"]).otherwise(f.struct(*(row[name] for name in _RANGE))))
    starts = beyond >= BUCKETS
    event = _event(STARTED, row["until"], row["value"], begin, f.lit(None), sign, usual)
    found = f.when(starts & row["is_new"], f.array_append(found, event)).otherwise(found)
    return f.struct(
        starts.alias("is_open"),
        f.when(starts, begin).alias("since"),
        sign.alias("sign"),
        usual.alias("usual"),
        f.when(starts, 0).otherwise(beyond).alias("beyond"),
        f.lit(0).alias("back"),
        f.when(~starts, begin).alias("begin"),
        row["until"].alias("until"),
        found.alias("found"),
    )


def _while_open(state: Column, row: Column) -> Column:
    usual, sign = state["usual"], state["sign"]
    limit = f.when(sign > 0, usual["high"] + LEAVE * usual["spread"]).otherwise(usual["low"] - LEAVE * usual["spread"])
    within = row["score"] * sign < LEAVE
    is_old = f.unix_millis(row["at"]) - f.unix_millis(state["since"]) > _FORGOTTEN_MS
    is_back = ((row["value"] - limit) * sign <= 0) | (within & (row["basis"].isin(WEEK, DAY) | is_old))
    is_back = f.coalesce(is_back, f.lit(False))
    follows = (state["back"] > 0) & _is_next(state, row)
    back = f.when(~is_back, 0).when(follows, state["back"] + 1).otherwise(1)
    begin = f.when(is_back, f.when(follows, state["begin"]).otherwise(row["at"]))
    ends = back >= BUCKETS
    event = _event(ENDED, row["until"], row["value"], state["since"], begin, sign, usual)
    found = f.when(ends & row["is_new"], f.array_append(state["found"], event)).otherwise(state["found"])
    return f.struct(
        (~ends).alias("is_open"),
        f.when(~ends, state["since"]).alias("since"),
        f.when(~ends, sign).alias("sign"),
        f.when(~ends, usual).alias("usual"),
        f.lit(0).alias("beyond"),
        f.when(ends, 0).otherwise(back).alias("back"),
        f.when(~ends, begin).alias("begin"),
        row["until"].alias("until"),
        found.alias("found"),
    )


def _is_next(state: Column, row: Column) -> Column:
    gap = f.unix_millis(row["at"]) - f.unix_millis(state["until"])
    return f.coalesce(gap <= GAP_BUCKETS * _length(row["at"], row["until"]), f.lit(False))


def _length(at: Column, until: Column) -> Column:
    return f.unix_millis(until) - f.unix_millis(at)


def _event(event: str, at: Column, value: Column, since: Column, ended: Column, sign: Column, usual: Column) -> Column:
    return f.struct(
        f.lit(event).alias("event"),
        at.alias("at"),
        since.alias("since"),
        ended.alias("ended"),
        value.alias("value"),
        sign.alias("sign"),
        usual.alias("usual"),
    ).cast(_FOUND_DDL)


def _with_worst(found: DataFrame, expected: DataFrame) -> DataFrame:
    """With the value that is furthest beyond the range, from the start of the anomaly to its end or to the event."""
    names = [name for name in found.columns if name not in ("usual", "sign", "known")]
    values = expected.select(*_SERIES, f.col("at").alias("_at"), f.col("value").alias("_value"))
    values = found.select(*names, "sign").join(values, [*_SERIES])
    values = values.where((f.col("_at") >= f.col("since")) & (f.col("_at") < f.coalesce("ended", "at")))
    values = values.groupBy(*_SERIES, "at", "since").agg(f.max(f.col("_value") * f.col("sign")).alias("_worst"))
    # The history may lack an anomaly that was open for long.
    rows = found.join(values, [*_SERIES, "at", "since"], "left")
    rows = rows.select(*names, "sign", "usual.*", f.coalesce(f.col("_worst") * f.col("sign"), "known").alias("worst"))
    limit = f.when(f.col("sign") > 0, f.col("high")).otherwise(f.col("low"))
    return rows.withColumn("score", (f.col("worst") - limit) / f.col("spread"))


def _reason() -> Column:
    span = f.concat(_number("low"), f.lit(" to "), _number("high"))
    when = (
        f.when(f.col("basis") == WEEK, "at this hour of the week")
        .when(f.col("basis") == DAY, "at this hour of the day")
        .otherwise("in the time before")
    )
    usual = f.concat(f.lit("; usual "), when, f.lit(": "), span)
    started = f.concat(_value("value"), f.lit(", unusual for "), _minutes("at", "since"), usual)
    ended = f.concat(
        f.lit("back to "),
        _value("value"),
        f.lit(" after "),
        _minutes("ended", "since"),
        f.lit("; worst: "),
        _number("worst"),
        usual,
    )
    hours = f"; nothing for {SILENT_MS // 3_600_000} hours, so the group is deleted or stands still"
    silent = f.concat(
        f.lit("over after "), _minutes("ended", "since"), f.lit(hours), f.lit("; worst: "), _number("worst")
    )
    silent = f.when(f.col("value").isNull(), f.concat(silent, usual))
    return f.when(f.col("event") == STARTED, started).otherwise(f.coalesce(silent, ended))


def _value(name: str) -> Column:
    what = (
        f.when(f.col("metric") == LAG, " records behind")
        .when(f.col("metric") == COMMIT_RATE, " commits per second")
        .otherwise(" rebalances")
    )
    return f.concat(_number(name), what)


def _number(name: str) -> Column:
    return f.when(f.col("metric") == COMMIT_RATE, f.format_number(name, 2)).otherwise(f.format_number(name, 0))


def _minutes(until: str, since: str) -> Column:
    seconds = (f.unix_millis(until) - f.unix_millis(since)) / 1000
    return (
        f.when(seconds < 120, f.format_string("%.0f s", seconds))
        .when(seconds < 7200, f.format_string("%.0f min", seconds / 60))
        .otherwise(f.format_string("%.1f h", seconds / 3600))
    )
