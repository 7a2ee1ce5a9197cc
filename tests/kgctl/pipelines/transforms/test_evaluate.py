"""Burrow's rules: windows worked out by hand, and many random ones against plain Python.

A window by hand is a list of (second, committed offset, log end at that second); `now` is the second of the evaluation
and the log end then.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kgctl.pipelines.schemas.groups import COMMITS, HEALTH
from kgctl.pipelines.transforms.evaluate import evaluate
from tests.kgctl.pipelines.transforms.oracle_evaluate import Commit, Point, expected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START_MS = 1_700_000_000_000
NOW = 200
ENDS_DDL = "`group` string, topic string, part int, at timestamp, log_end bigint"
START = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=START_MS)

# Of one partition: its commits (second, offset) and the ends of its log (second, end).
Histories = dict[str, tuple[list[Commit], list[Point]]]


def evaluated(spark: SparkSession, histories: Histories, second: int) -> dict[str, Any]:
    """Rows by group."""
    commits = [
        (
            group,
            "t",
            0,
            offset,
            None,
            "",
            None if offset is None else at(when),
            None,
            3,
            offset is None,
            0,
            number,
            at(when),
        )
        for group, (made, _) in histories.items()
        for number, (when, offset) in enumerate(made)
    ]
    ends = [(group, "t", 0, at(when), end) for group, (_, points) in histories.items() for when, end in points]
    rows = evaluate(
        spark.createDataFrame(commits, COMMITS.ddl),
        spark.createDataFrame(ends, ENDS_DDL),
        START_MS + second * 1000,
    ).collect()
    assert len({row.group for row in rows}) == len(rows)
    return {row.group: row for row in rows}


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def by_hand(*window: tuple[int, int, int], now: tuple[int, int]) -> tuple[list[Commit], list[Point]]:
    return [(second, offset) for second, offset, _ in window], [*((second, end) for second, _, end in window), now]


HAND_MADE: dict[str, tuple[tuple[list[Commit], list[Point]], str, str, int]] = {
    # lags 10, 10 and now 0: now comes first
    "no lag now": (by_hand((0, 10, 20), (10, 20, 30), now=(12, 20)), "OK", "no lag now", 10),
    # lags 5, 0, 5 and now 9: OK, although 25 came after 30
    "no lag before": (
        by_hand((0, 15, 20), (10, 30, 30), (20, 25, 30), now=(22, 34)),
        "OK",
        "no lag at the commit of 2023-11-14 22:16:28",
        9,
    ),
    # offsets 10, 20, 15, and 20 s without a commit after 20 s
    "rewound": (
        by_hand((0, 10, 30), (10, 20, 40), (20, 15, 50), now=(40, 50)),
        "REWOUND",
        "the committed offset went back from 20 to 15",
        35,
    ),
    # the window is 20 s long, the last commit 21 s ago: that comes before a rewind and commits of one offset
    "stopped": (
        by_hand((0, 10, 30), (10, 10, 30), (20, 10, 30), now=(41, 30)),
        "STOPPED",
        "no commit for 21.0 s, after 3 commits within 20.0 s",
        20,
    ),
    # it had read everything when it died; 101 s later, lag is 10
    "stopped without lag": (
        by_hand((0, 10, 10), (10, 20, 20), now=(111, 30)),
        "STOPPED",
        "no commit for 101.0 s, after 2 commits within 10.0 s",
        10,
    ),
    # the same, but 100 s ago there was no lag
    "no lag a moment ago": (
        ([(0, 10), (10, 20)], [(0, 10), (10, 20), (50, 20), (150, 30)]),
        "OK",
        "no lag at the commit of 2023-11-14 22:14:20",
        10,
    ),
    # three commits of one offset, the last one 20 s ago: not longer than the window
    "stalled": (
        by_hand((0, 10, 30), (10, 10, 30), (20, 10, 30), now=(40, 30)),
        "STALLED",
        "lag, and 3 commits of the same offset 10",
        20,
    ),
    # lags 10, 10, 15: never less than before
    "lagging": (
        by_hand((0, 10, 20), (10, 20, 30), (20, 25, 40), now=(25, 44)),
        "LAGGING",
        "lag never fell in 3 commits: from 10 to 15",
        19,
    ),
    # lags 10, 9, 15: it fell once
    "up and down": (
        by_hand((0, 10, 20), (10, 21, 30), (20, 25, 40), now=(25, 40)),
        "OK",
        "lag fell within the window",
        15,
    ),
    # one commit: its window is 0 s long, and 1 s is longer
    "one commit": (
        by_hand((0, 10, 20), now=(1, 20)),
        "STOPPED",
        "no commit for 1.0 s after a single one",
        10,
    ),
    # the rewind is the 11th from the end: only the ten commits with lag 1 up to 2 count
    "long ago": (
        by_hand((0, 90, 99), *((second, second, second + 1 + second // 9) for second in range(1, 11)), now=(10, 12)),
        "LAGGING",
        "lag never fell in 10 commits: from 1 to 2",
        2,
    ),
    # deleted at 10: the offset before that is no rewind; lags 10, 20
    "deleted before": (
        ([(0, 90), (10, None), (20, 10), (30, 20)], [(20, 20), (30, 40), (31, 40)]),
        "LAGGING",
        "lag never fell in 2 commits: from 10 to 20",
        20,
    ),
    # points at 0 and 20 only: at 5 the log ended at 25, at 15 at 75: lags 15, 15
    "interpolated": (
        ([(5, 10), (15, 60)], [(0, 0), (20, 100)]),
        "LAGGING",
        "lag never fell in 2 commits: from 15 to 15",
        40,
    ),
}


UNKNOWN: Histories = {
    "no ends": ([(0, 10), (5, 20)], []),
    "no commits": ([], [(0, 10)]),
    "deleted": ([(0, 10), (5, None)], [(0, 10)]),
    "beyond all logs": ([(0, -(2**63)), (5, 1)], [(0, 10)]),
}


def hand_made() -> Histories:
    """All windows, shifted in time so that they are evaluated at the same second; later rows must not count."""
    histories: Histories = {"later": ([(NOW + 1, 5)], [(NOW + 1, 9)])}
    for name, ((commits, points), *_) in HAND_MADE.items():
        shift = NOW - max(second for second, _ in points)
        histories[name] = (
            [*((second + shift, offset) for second, offset in commits), (NOW + 1, 0)],
            [*((second + shift, end) for second, end in points), (NOW + 1, 0)],
        )
    return histories


def random_histories() -> Histories:
    randomness = random.Random(11)
    histories: Histories = {}
    for number in range(1500):
        step, drift = randomness.choice([0, 1, 5]), randomness.choice([0, 0, 1, -2])
        gaps = [randomness.randrange(1, 4) for _ in range(randomness.randrange(1, 15))]
        second, offset, commits, points = (
            NOW - sum(gaps) - randomness.randrange(randomness.choice([25, 150])),
            500,
            list[Commit](),
            list[Point](),
        )
        for gap in gaps:
            second += gap
            offset -= randomness.choice([3, *[-step] * 30])
            commits.append((second, None if randomness.random() < 0.03 else offset))
            points.append((second, offset + max(0, 20 + drift * len(commits) + randomness.choice([0, 0, 0, 0, 0, -3]))))
        if second < NOW:
            points.append((NOW, offset + randomness.choice([0, 5, 50, 50])))
        histories[f"group-{number}"] = (commits, points)
    return histories


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, Any]:
    """The rows of all histories by group, evaluated at once."""
    return evaluated(spark, hand_made() | UNKNOWN | random_histories(), NOW)


def test_windows_by_hand(rows: dict[str, Any]) -> None:
    assert "later" not in rows
    for name, (_, status, reason, lag) in HAND_MADE.items():
        assert [rows[name].status, rows[name].reasons, rows[name].lag] == [status, [reason], lag], name
    complete = [rows[name].complete for name in ("one commit", "deleted before", "lagging", "long ago")]
    assert complete == [0.1, 0.2, 0.3, 1.0]
    assert all(row.at.replace(tzinfo=UTC) == at(NOW) for row in rows.values())


def test_a_partition_that_cannot_be_evaluated_is_unknown_or_has_no_row(rows: dict[str, Any]) -> None:
    found = {group: rows[group] for group in UNKNOWN if group in rows}
    assert {group: (row.status, row.complete, row.lag, row.reasons) for group, row in found.items()} == {
        "no ends": ("UNKNOWN", 0.2, None, ["the end of the log is not known"]),
        "no commits": ("UNKNOWN", 0.0, None, ["there is no commit"]),
        "beyond all logs": ("UNKNOWN", 0.2, 9, ["the end of the log is not known"]),
    }


def test_random_windows_agree_with_plain_python(rows: dict[str, Any]) -> None:
    histories = random_histories()
    wanted = {group: health for group, history in histories.items() if (health := expected(*history, NOW)) is not None}
    found = {group: rows[group] for group in histories if group in rows}
    assert {
        group: (row.status, row.lag, pytest.approx(row.complete), pytest.approx(row.eta_s))
        for group, row in found.items()
    } == wanted
    statuses = [status for status, *_ in wanted.values()]
    assert all(statuses.count(status) > 20 for status in ("OK", "REWOUND", "STOPPED", "STALLED", "LAGGING"))
    assert len([eta_s for *_, eta_s in wanted.values() if eta_s]) > 20


def test_the_rows_have_the_schema_of_the_table(spark: SparkSession) -> None:
    frame: DataFrame = evaluate(spark.createDataFrame([], COMMITS.ddl), spark.createDataFrame([], ENDS_DDL), START_MS)
    assert frame.schema.simpleString() == spark.createDataFrame([], HEALTH.ddl).schema.simpleString()
