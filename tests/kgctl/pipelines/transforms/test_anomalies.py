"""Baselines and anomalies: Spark against plain Python, incidents among healthy weeks, and the count of false alarms."""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kgctl.pipelines.schemas.group_facts import ANOMALIES, EXPECTED
from kgctl.pipelines.transforms.anomalies import anomalies
from kgctl.pipelines.transforms.expected import COMMIT_RATE, LAG, REBALANCES, expected
from tests.kgctl.pipelines.transforms import oracle_anomalies as oracle
from tests.kgctl.pipelines.transforms.oracle_anomalies import Found, Judged, Observed
from tests.kgctl.pipelines.transforms.weeks import A_DAY, A_WEEK, BUCKET, START, changed, healthy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FROM_MS = "`group` string, metric string, at_ms bigint, value double, floor double"


def frame_of(spark: SparkSession, rows: list[Observed]) -> DataFrame:
    made = spark.createDataFrame([tuple(row) for row in rows], FROM_MS)
    return made.selectExpr("`group`", "metric", "timestamp_millis(at_ms) at", "value", "floor")


def ms(moment: Any) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


def in_runs(spark: SparkSession, rows: list[Observed], ends: list[int]) -> tuple[list[Any], list[Any]]:
    """The rows of both tables after runs that end at these times, each with the tables of those before."""
    judged: DataFrame = spark.createDataFrame([], EXPECTED.ddl)
    found: DataFrame = spark.createDataFrame([], ANOMALIES.ddl)
    begin = 0
    for end in ends:
        new = frame_of(spark, [row for row in rows if begin <= row.at < end])
        more = spark.createDataFrame(expected(new, judged, BUCKET).collect(), EXPECTED.ddl)
        events = spark.createDataFrame(anomalies(more, judged, found, end).collect(), ANOMALIES.ddl)
        judged, found, begin = judged.unionByName(more), found.unionByName(events), end
    return judged.collect(), found.collect()


def known_judged(one: Judged) -> Any:
    if one.basis is None:
        return one.row.value, None, None
    numbers = (one.middle, one.low, one.high, one.spread, one.score)
    return one.row.value, one.basis, pytest.approx((one.observations, *numbers))


def known_found(one: Found) -> Any:
    return one.group, one.metric, one.event, one.at, one.since, one.end, pytest.approx(one.worst)


@pytest.mark.cluster
def test_spark_agrees_with_plain_python_however_the_runs_divide_the_time(spark: SparkSession) -> None:
    """Four days, and the last day of each of four weeks, so that every kind of baseline and gaps occur."""
    random = Random(5)
    rows = [row for row in troubled("a", 0, random) if random.random() > 0.01]
    rows += [*silent("deleted"), *silent("back", back=6 * A_DAY)]
    judged = oracle.judge(rows, BUCKET)
    end = max(row.at for row in rows) + BUCKET
    wanted = oracle.anomalies(judged, BUCKET, end)
    # One run ends while two groups are silent, before that counts.
    found, events = in_runs(spark, rows, [*sorted((amid(wanted), START + 5 * A_DAY * BUCKET // 2)), end])
    assert {(row.group, row.metric, ms(row.at)): shown(row) for row in found} == {
        (one.row.group, one.row.metric, one.row.at): known_judged(one) for one in judged
    }
    assert len(found) == len(rows)
    assert {one.basis for one in judged} == {None, "recent", "hour of day", "hour of week"}
    assert sorted(map(shown_event, events)) == sorted(map(known_found, wanted), key=lambda one: one[:5])
    assert Counter(one.event for one in wanted)["ended"] > 4
    assert all(row.reason for row in events)
    (gone,) = [row for row in events if row.group == "deleted" and row.event == "ended"]
    assert (ms(gone.ended) - START) // BUCKET == 2 * A_DAY
    assert (ms(gone.at) - START) // BUCKET == 3 * A_DAY
    assert gone.value is None
    assert "; nothing for 24 hours, so the group is deleted or stands still; worst: " in gone.reason


def amid(events: list[Found]) -> int:
    """A time at which one anomaly is open and another is one bucket from starting."""
    open_until = {(one.metric, one.since): one.at for one in events if one.event == "ended"}
    return next(
        one.since + 2 * BUCKET
        for one in sorted(events, key=lambda one: one.at)
        if any(metric != one.metric and since < one.since < end for (metric, since), end in open_until.items())
    )


def troubled(group: str, seed: int, random: Random) -> list[Observed]:
    rows = healthy(group, seed, 4)
    for metric in (LAG, COMMIT_RATE, REBALANCES):
        for _ in range(60):
            begin = random.randrange(4 * A_WEEK)
            factor = random.choice((0.0, 0.4, 3.0, 40.0))
            rows = changed(
                rows, metric, begin, begin + random.randrange(1, 40), lambda _, value, by=factor: value * by + by
            )
    late = 4 * A_WEEK - A_DAY
    rows = changed(rows, LAG, late + 100, late + 140, lambda _, value: 40 * value + 1e6)
    rows = changed(rows, REBALANCES, late + 120, late + 130, lambda _, value: value + 40)
    places = ((row, (row.at - START) // BUCKET) for row in rows)
    return [row for row, number in places if number < 4 * A_DAY or number % A_WEEK >= A_WEEK - A_DAY]


def silent(group: str, back: int | None = None) -> list[Observed]:
    """Its lag is unusual before it falls silent after two days; `back`: the bucket in which it is there again."""
    rows = changed(healthy(group, 3, 1), LAG, 2 * A_DAY - 9, 2 * A_DAY, lambda _, value: 40 * value + 1e6)
    numbered = [((row.at - START) // BUCKET, row) for row in rows]
    return [row for number, row in numbered if number < 2 * A_DAY or (back is not None and number >= back)]


def shown(row: Any) -> Any:
    if row.basis is None:
        return row.value, None, None
    return row.value, row.basis, (row.observations, row.median, row.low, row.high, row.spread, row.score)


def shown_event(row: Any) -> Any:
    ended = None if row.ended is None else ms(row.ended)
    return row.group, row.metric, row.event, ms(row.at), ms(row.since), ended, row.worst


def found_in(rows: list[Observed]) -> list[Found]:
    return oracle.anomalies(oracle.judge(rows, BUCKET), BUCKET)


def test_healthy_weeks_raise_no_false_alarm_once_the_weekly_job_is_known() -> None:
    """What Spark finds, by the test above: 15 group-weeks with 45 deployments, pauses, and a job every Monday in one group."""
    found = [
        one
        for number in range(3)
        for one in found_in([*healthy(f"g{number}", number, 5, has_weekly_job=number == 0)])
        if one.event == "started"
    ]
    assert {(one.group, one.metric) for one in found} == {("g0", LAG)}
    # A Monday is usual once there are three to compare it with.
    assert [(one.since - START) // BUCKET // A_WEEK for one in found] == [0, 1, 2]


def test_incidents_among_healthy_weeks_are_found_when_they_begin_and_end() -> None:
    tuesday, wednesday, friday = (4 * A_WEEK + day * A_DAY + 144 for day in (1, 2, 4))
    rows = healthy("g", 1, 5)
    # The consumer stands still for four hours, then reads what has piled up.
    rows = changed(rows, COMMIT_RATE, tuesday, tuesday + 48, lambda _, __: 0.0)
    rows = changed(rows, LAG, tuesday, tuesday + 48, lambda since, value: value * (1 + 100 * since))
    rows = changed(rows, REBALANCES, wednesday, wednesday + 24, lambda _, value: value + 10)
    # Once more the usual lag every hour.
    rows = changed(rows, LAG, friday, 5 * A_WEEK, lambda since, value: value * (1 + since / 12))
    found = found_in([*rows])
    shown = {(one.metric, one.event, (one.since - START) // BUCKET): (one.at - START) // BUCKET for one in found}
    assert {key[:2] for key in shown} == {
        *((metric, event) for metric in (LAG, COMMIT_RATE, REBALANCES) for event in ("started", "ended"))
    }
    starts = sorted((since, metric, at - since) for (metric, event, since), at in shown.items() if event == "started")
    (lag_since, *_), (commit_since, *_), (storm_since, _, storm_delay), (leak_since, metric, _) = starts
    assert tuesday <= lag_since <= tuesday + 1
    assert tuesday <= commit_since <= tuesday + 1
    assert (storm_since, storm_delay) == (wednesday, 3)
    assert metric == LAG
    assert friday <= leak_since <= friday + 16 * 12
    # Each ended three buckets after it was over; the leak lasts.
    ends = {(metric, since): at for (metric, event, since), at in shown.items() if event == "ended"}
    assert sorted(ends.values()) == [tuesday + 51, tuesday + 51, wednesday + 27]
