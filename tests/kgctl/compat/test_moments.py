"""Times and durations are read as Java reads them."""

from __future__ import annotations

import pytest

from kgctl.compat.consumer_groups.moments import before_ms, moment_ms
from kgctl.compat.java_errors import JavaError

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T01:00:00.000", HOUR_MS),
        ("1970-01-01T01:00:00.007Z", HOUR_MS + 7),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T01:00:00.000-01", 2 * HOUR_MS),
    ],
)
def test_a_time_without_a_zone_is_in_utc(text: str, ms: int) -> None:
    assert moment_ms(text) == ms


@pytest.mark.parametrize("text", ["1970-01-01", "1970-01-01T01:00:00", "1970-13-01T01:00:00.000", "now"])
def test_a_time_without_milliseconds_or_outside_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(JavaError, match="ParseException"):
        moment_ms(text)


@pytest.mark.parametrize(
    ("text", "ms"), [("PT1H", HOUR_MS), ("P1DT-1H", 23 * HOUR_MS), ("pt1.5s", 1500), ("-PT1H", -HOUR_MS)]
)
def test_a_duration_is_that_of_java(text: str, ms: int) -> None:
    assert before_ms(text, 10 * HOUR_MS) == 10 * HOUR_MS - ms


@pytest.mark.parametrize("text", ["1h", "P", "PT", "PT1", "P1H", ""])
def test_a_duration_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(JavaError, match="cannot be parsed to a Duration"):
        before_ms(text, 0)
