"""Tests of numbers and times as the report says them."""

from __future__ import annotations

import pytest

from kgctl.pipelines.report import words
from kgctl.pipelines.report.rows import Facts, Health, WorstGroup

S, MIN, H, D = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (None, "-"),
        (0, "0 ms"),
        (999, "999 ms"),
        (S, "1.0 s"),
        (59_949, "59.9 s"),
        (59_950, "1 min"),
        (MIN + 5 * S, "1 min 5 s"),
        (H - S, "59 min 59 s"),
        (H, "1 h"),
        (D - 1, "1 d"),
        (D - MIN, "23 h 59 min"),
        (2 * D + 4 * H, "2 d 4 h"),
        (1e300, "over 100 years"),
    ],
)
def test_a_duration_has_two_units_at_most(ms: float | None, said: str) -> None:
    assert words.duration(ms) == said


@pytest.mark.parametrize(
    ("per_s", "said"),
    [(None, "-"), (0.0, "0/s"), (0.04, "<0.1/s"), (0.1, "0.1/s"), (12.34, "12.3/s"), (1234.0, "1,234/s")],
)
def test_a_rate_is_per_second(per_s: float | None, said: str) -> None:
    assert words.rate(per_s) == said


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (None, "-"),
        (0, "1970-01-01 00:00:00"),
        (-1, "-"),
        (253_402_300_799_999, "9999-12-31 23:59:59"),
        (253_402_300_800_000, "-"),
    ],
)
def test_a_moment_is_utc_to_the_second(ms: int | None, said: str) -> None:
    assert words.moment(ms) == said


def test_a_period_says_its_day_once() -> None:
    assert words.period(0, 5 * S) == "1970-01-01 00:00:00 to 00:00:05 UTC"
    assert words.period(0, D) == "1970-01-01 00:00:00 to 1970-01-02 00:00:00 UTC"
    assert words.period(0, 1) == "1970-01-01 00:00:00 UTC"
    assert words.period(None, None) == "-"


def test_one_is_not_many() -> None:
    assert (words.count(1, "group"), words.count(2000, "group")) == ("1 group", "2,000 groups")


@pytest.mark.parametrize("value", [None, 0, 1234567])
def test_what_is_not_known_is_never_nought(value: int | None) -> None:
    assert words.number(value) == {None: "-", 0: "0", 1234567: "1,234,567"}[value]


@pytest.mark.parametrize(
    ("bad", "partitions", "lag", "said"),
    [
        (1, 1, 1, "its one partition is not healthy, 1 record waiting."),
        (3, 3, 0, "none of its 3 partitions is healthy."),
        (1, 3, None, "1 of its 3 partitions is not healthy."),
        (2, 3, 2000, "2 of its 3 partitions are not healthy, 2,000 records waiting."),
    ],
)
def test_the_worst_group_is_named_with_what_is_wrong(bad: int, partitions: int, lag: int | None, said: str) -> None:
    worst = WorstGroup("a", "LAGGING", bad, partitions, lag)
    health = Health(0, 2, 1, (), worst, (), 0)
    facts = Facts({}, 0, 0, 2, None, (), 0, 0, health, None, None)
    assert words.summary(facts)[1:] == ["1 of 2 groups is healthy.", f"Worst is a (falling behind): {said}"]
