"""Anomalies: when what a group does left its usual range for a while, and when it was back.

An anomaly starts with the third bucket in a row whose score is ENTER or more beyond the range, on the same side. It ends with the
third bucket in a row that is back: within LEAVE spreads of the range that was usual when it started, or of the present one if that
is of weeks or days. So an incident does not become usual while it lasts; after a week it does, whatever the range.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from kgctl.pipelines.schemas.group_facts import ANOMALIES
from kgctl.pipelines.transforms.expected import COMMIT_RATE, DAY, LAG, WEEK

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


def anomalies(expected: DataFrame, history: DataFrame, before: DataFrame) -> DataFrame:
    """The rows of ANOMALIES that `expected` leads to. All arguments have the schemas of their tables.

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
    series = series.join(last, [*_SERIES], "left")
    rows_since = f.filter("rows", lambda row: f.col("last").isNull() | (row["at"] >= f.col("last.at")))
    state = f.aggregate(rows_since, _seed(f.col("last")), _next)
    found = series.select(*_SERIES, f.explode(state["found"]).alias("found")).select(*_SERIES, "found.*")
    rows = _with_worst(found, expected.unionByName(history.select(*expected.columns)))
    return rows.withColumn("reason", _reason()).select(*ANOMALIES.column_names)


def _seed(last: Column) -> Column:
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
        f.lit(None).cast("timestamp").alias("until"),
        f.array().alias("found"),
    ).cast(_STATE_DDL)


def _next(state: Column, row: Column) -> Column:
    return f.when(state["is_open"], _while_open(state, row)).otherwise(_while_usual(state, row)).cast(_STATE_DDL)


def _while_usual(state: Column, row: Column) -> Column:
    sign = f.signum(row["score"])
    is_beyond = f.coalesce(f.abs(row["score"]) >= ENTER, f.lit(False))
    follows = (state["beyond"] > 0) & (state["sign"] == sign) & _is_next(state, row)
    beyond = f.when(~is_beyond, 0).when(follows, state["beyond"] + 1).otherwise(1)
    begin = f.when(is_beyond, f.when(follows, state["begin"]).otherwise(row["at"]))
    # The range before the first of these buckets is the usual one.
    usual = f.when(is_beyond, f.when(follows, state["usual"]).otherwise(f.struct(*(row[name] for name in _RANGE))))
    starts = beyond >= BUCKETS
    found = f.when(
        starts & row["is_new"], f.array_append(state["found"], _event(STARTED, row, begin, f.lit(None), sign, usual))
    )
    return f.struct(
        starts.alias("is_open"),
        f.when(starts, begin).alias("since"),
        sign.alias("sign"),
        usual.alias("usual"),
        f.when(starts, 0).otherwise(beyond).alias("beyond"),
        f.lit(0).alias("back"),
        f.when(~starts, begin).alias("begin"),
        row["until"].alias("until"),
        found.otherwise(state["found"]).alias("found"),
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
    found = f.when(
        ends & row["is_new"], f.array_append(state["found"], _event(ENDED, row, state["since"], begin, sign, usual))
    )
    return f.struct(
        (~ends).alias("is_open"),
        f.when(~ends, state["since"]).alias("since"),
        f.when(~ends, sign).alias("sign"),
        f.when(~ends, usual).alias("usual"),
        f.lit(0).alias("beyond"),
        f.when(ends, 0).otherwise(back).alias("back"),
        f.when(~ends, begin).alias("begin"),
        row["until"].alias("until"),
        found.otherwise(state["found"]).alias("found"),
    )


def _is_next(state: Column, row: Column) -> Column:
    gap = f.unix_millis(row["at"]) - f.unix_millis(state["until"])
    return f.coalesce(gap <= GAP_BUCKETS * _length(row["at"], row["until"]), f.lit(False))


def _length(at: Column, until: Column) -> Column:
    return f.unix_millis(until) - f.unix_millis(at)


def _event(event: str, row: Column, since: Column, ended: Column, sign: Column, usual: Column) -> Column:
    return f.struct(
        f.lit(event).alias("event"),
        row["until"].alias("at"),
        since.alias("since"),
        ended.alias("ended"),
        row["value"].alias("value"),
        sign.alias("sign"),
        usual.alias("usual"),
    ).cast(_FOUND_DDL)


def _with_worst(found: DataFrame, expected: DataFrame) -> DataFrame:
    """With the value that is furthest beyond the range, from the start of the anomaly to its end or to the event."""
    values = expected.select(*_SERIES, f.col("at").alias("_at"), f.col("value").alias("_value"))
    while_open = (f.col("_at") >= f.col("since")) & (f.col("_at") < f.coalesce("ended", "at"))
    names = [name for name in found.columns if name not in ("usual", "sign")]
    rows = found.join(values, [*_SERIES]).where(while_open)
    rows = rows.groupBy(*names, "usual", "sign").agg(f.max(f.col("_value") * f.col("sign")).alias("_worst"))
    rows = rows.select(*names, "sign", "usual.*", (f.col("_worst") * f.col("sign")).alias("worst"))
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
    return f.when(f.col("event") == STARTED, started).otherwise(ended)


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
