"""How the report puts numbers, times and the sentences at its top."""

from __future__ import annotations

import pytest

from kgctl.model.health import Health
from kgctl.pipelines.report import wording
from kgctl.pipelines.report.charts import FONT_PX
from kgctl.pipelines.report.rows import Facts, HealthSummary, WorstGroup
from kgctl.pipelines.report.text_width import fitting, text_width

S, MIN, H, D = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("ms", "text"),
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
def test_a_duration_has_at_most_two_units(ms: float | None, text: str) -> None:
    assert wording.duration(ms) == text


@pytest.mark.parametrize(
    ("per_s", "text"),
    [(None, "-"), (0.0, "0/s"), (0.04, "<0.1/s"), (0.1, "0.1/s"), (12.34, "12.3/s"), (1234.0, "1,234/s")],
)
def test_a_rate_is_per_second(per_s: float | None, text: str) -> None:
    assert wording.rate(per_s) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "-"),
        (0, "1970-01-01 00:00:00"),
        (-1, "-"),
        (253_402_300_799_999, "9999-12-31 23:59:59"),
        (253_402_300_800_000, "-"),
    ],
)
def test_a_moment_is_utc_to_the_second(ms: int | None, text: str) -> None:
    assert wording.moment(ms) == text


def test_a_period_within_a_day_names_the_day_once() -> None:
    assert wording.period(0, 5 * S) == "1970-01-01 00:00:00 to 00:00:05 UTC"
    assert wording.period(0, D) == "1970-01-01 00:00:00 to 1970-01-02 00:00:00 UTC"
    assert wording.period(0, 1) == "1970-01-01 00:00:00 UTC"
    assert wording.period(None, None) == "-"


def test_the_plural_follows_the_number() -> None:
    assert (wording.counted(1, "group"), wording.counted(2000, "group")) == ("1 group", "2,000 groups")


@pytest.mark.parametrize("value", [None, 0, 1234567])
def test_an_unknown_number_is_not_zero(value: int | None) -> None:
    assert wording.number(value) == {None: "-", 0: "0", 1234567: "1,234,567"}[value]


@pytest.mark.parametrize(
    ("unhealthy", "partitions", "lag", "text"),
    [
        (1, 1, 1, "its only partition is not healthy, with a lag of 1 record."),
        (3, 3, 0, "none of its 3 partitions is healthy."),
        (1, 3, None, "1 of its 3 partitions is not healthy."),
        (2, 3, 2000, "2 of its 3 partitions are not healthy, with a lag of 2,000 records."),
    ],
)
def test_the_worst_group_is_named_with_its_partitions_and_lag(
    unhealthy: int, partitions: int, lag: int | None, text: str
) -> None:
    worst = WorstGroup("a", Health.LAGGING, unhealthy, partitions, lag)
    health = HealthSummary(0, 2, 1, (), worst, (), 0)
    facts = Facts({}, 0, 0, 2, None, (), 0, 0, health, None, None)
    assert wording.summary(facts)[1:] == ["1 of 2 groups with commits is healthy.", f"The worst is a (LAGGING): {text}"]


@pytest.mark.parametrize("name", ["W" * 300, "i" * 300, "\u652f\u6255\u3044" * 99, "orders", ""])
def test_a_fitted_name_keeps_as_much_of_its_start_and_end_as_there_is_room_for(name: str) -> None:
    short = fitting(name, 188, FONT_PX)
    assert text_width(short, FONT_PX) <= 188
    assert short == name or ("\u2026" in short and text_width(short + short[-1] * 2, FONT_PX) > 188)
