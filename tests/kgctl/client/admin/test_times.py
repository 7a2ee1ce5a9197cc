"""Durations and times in the formats of Kafka's tools."""

from __future__ import annotations

import pytest

from kgctl.client.admin.times import duration_ms, time_ms
from kgctl.client.net.errors import BadValue


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT0S", 0),
        ("PT1H", 3_600_000),
        ("P1D", 86_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("PT90M", 5_400_000),
        ("pt1h", 3_600_000),
        ("-PT1H", -3_600_000),
        ("PT-1H", -3_600_000),
        ("PT0.001S", 1),
    ],
)
def test_a_duration_is_parsed_as_in_java(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "PT1", "P1H", "PT1D", "P1DT", "P1W", "PT1H ", "PT1.5H"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        duration_ms(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:00.000", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("2023-11-14T22:13:20.123", 1_700_000_000_123),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_times_without_a_zone_are_utc(text: str, milliseconds: int) -> None:
    assert time_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "noon", "2023-13-01", "1700000000"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        time_ms(text)
