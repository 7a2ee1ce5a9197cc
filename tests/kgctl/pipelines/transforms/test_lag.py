"""Lag, rates and time to catch up: small histories by hand, many random ones against plain Python."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from kgctl.pipelines.schemas.groups import COMMITS, LAG, LOG_ENDS
from kgctl.pipelines.transforms.lag import lag
from tests.kgctl.pipelines.transforms.oracle_lag import Commit, End, expected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2024, 1, 1, tzinfo=UTC)
BEHIND_DDL = "topic string, part int, offset bigint, behind_ts timestamp"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def commits_of(spark: SparkSession, commits: list[Commit]) -> DataFrame:
    """(key, second, offset); a tombstone has no offset and no commit time of its own."""
    rows = [
        (*key, offset, None, "", None if offset is None else at(second), None, 3, offset is None, 0, number, at(second))
        for number, (key, second, offset) in enumerate(commits)
    ]
    return spark.createDataFrame(rows, COMMITS.ddl)


def ends_of(spark: SparkSession, ends: list[End]) -> DataFrame:
    rows = [(topic, part, at(second), None, end, source) for topic, part, second, end, source in ends]
    return spark.createDataFrame(rows, LOG_ENDS.ddl)


def behind_of(spark: SparkSession, behind: dict[tuple[str, int, int], float]) -> DataFrame:
    return spark.createDataFrame([(*key, at(second)) for key, second in behind.items()], BEHIND_DDL)


def test_a_history_by_hand(spark: SparkSession) -> None:
    key = ("grüße", "t", 0)
    commits: list[Commit] = [(key, 10, 100), (key, 20, 150), (key, 35, 260), (key, 50, None)]
    ends: list[End] = [
        ("t", 0, second, end, "by_timestamp") for second, end in [(5, 90), (10, 120), (30, 200), (40, 250), (60, 300)]
    ]
    # A sampled point wins over one looked up; no group reads the other topic.
    ends += [("t", 0, 30, 210, "sampled"), ("u", 0, 30, 1, "sampled")]
    rows = (
        lag(commits_of(spark, commits), ends_of(spark, ends), behind_of(spark, {("t", 0, 150): 22}))
        .orderBy("at")
        .collect()
    )
    found = [tuple(row)[3:] for row in rows]
    naive = [at(second).replace(tzinfo=None) for second in (10, 30, 40)]
    assert found == [
        # The commit of that second counts; the age of the first of the 20 records is not known.
        (naive[0], 100, 120, 20, None, None, None, None),
        # 50 records read and 90 written in 20 s: the lag grows. The record at 150 was written at 22.
        (naive[1], 150, 210, 60, 8_000, 2.5, 4.5, None),
        # The commit is beyond the known end: no lag.
        (naive[2], 260, 250, 0, 0, 11.0, 4.0, 0.0),
        # There is no commit yet at 5, and none any more at 60.
    ]


def test_the_time_to_catch_up_is_the_lag_divided_by_the_gain(spark: SparkSession) -> None:
    key = ("g", "t", 0)
    commits: list[Commit] = [(key, 0, 0), (key, 9, 80)]
    ends: list[End] = [("t", 0, 0, 100, "sampled"), ("t", 0, 10, 120, "sampled")]
    *_, row = lag(commits_of(spark, commits), ends_of(spark, ends), behind_of(spark, {})).orderBy("at").collect()
    # 8/s against 2/s gains 6 records a second on 40.
    assert (row.lag, row.consume_rate, row.produce_rate, row.eta_s) == (40, 8.0, 2.0, pytest.approx(40 / 6))


def test_impossible_offsets_raise_no_error(spark: SparkSession) -> None:
    commits: list[Commit] = [(("g", "t", 0), 0, -(2**63)), (("h", "t", 0), 0, 2**63 - 1)]
    ends: list[End] = [("t", 0, 1, 2**63 - 1, "sampled"), ("t", 0, 2, 5, "sampled")]
    rows = lag(commits_of(spark, commits), ends_of(spark, ends), behind_of(spark, {})).orderBy("group", "at").collect()
    assert [row.lag for row in rows] == [None, None, 0, 0]


def test_random_histories_agree_with_plain_python(spark: SparkSession) -> None:
    randomness = random.Random(5)
    keys = [(group, topic, part) for group in ("a", "\u0000b", "") for topic in ("t", "ü") for part in range(3)]
    commits: list[Commit] = [
        (randomness.choice(keys), randomness.randrange(100), randomness.choice([None, *range(0, 400, 7)]))
        for _ in range(600)
    ]
    commits.sort(key=lambda commit: commit[1])
    ends: list[End] = [
        (topic, part, second, second * 3 + randomness.randrange(20), "sampled")
        for topic in ("t", "ü")
        for part in range(3)
        for second in randomness.sample(range(120), 40)
    ]
    behind = {
        (topic, part, offset): randomness.randrange(120)
        for topic in "tü"
        for part in range(2)
        for offset in range(0, 400, 14)
    }
    rows = lag(commits_of(spark, commits), ends_of(spark, ends), behind_of(spark, behind)).collect()
    found = {
        (*tuple(row)[:3], round((row.at.replace(tzinfo=UTC) - START).total_seconds())): tuple(row)[4:] for row in rows
    }
    assert len(found) == len(rows)
    assert found == expected(commits, ends, behind)
    assert sum(row.eta_s is not None and row.eta_s > 0 for row in rows) > 30


def test_the_rows_have_the_schema_of_the_table(spark: SparkSession) -> None:
    frame = lag(commits_of(spark, []), ends_of(spark, []), behind_of(spark, {}))
    assert frame.schema.simpleString() == spark.createDataFrame([], LAG.ddl).schema.simpleString()
