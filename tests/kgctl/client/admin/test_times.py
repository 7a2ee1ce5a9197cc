"""Durations and times in the formats of Kafka's tools."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.client.admin.times import duration_ms, moment_ms, time_ms
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


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1h30m", 5_400_000),
        ("90s", 90_000),
        ("1w2d", 777_600_000),
        ("1.5h", 5_400_000),
        ("500ms", 500),
        ("1m1ms", 60_001),
        ("-15m", -900_000),
    ],
)
def test_a_duration_has_a_short_form(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["-", "1", "1x", "m", "1h 30m", "30m1h", "1hm", "1h30", "1H30M", "now"])
def test_a_short_duration_has_a_unit_for_each_number_largest_first(text: str) -> None:
    with pytest.raises(BadValue):
        duration_ms(text)


PARTS = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


@given(st.dictionaries(st.sampled_from(list(PARTS)), st.integers(0, 10**6), min_size=1))
def test_any_short_duration_is_the_sum_of_its_parts(parts: dict[str, int]) -> None:
    text = "".join(f"{parts[unit]}{unit}" for unit in PARTS if unit in parts)
    assert duration_ms(text) == sum(parts[unit] * PARTS[unit] for unit in parts)


@given(st.text(max_size=20))
def test_any_text_is_a_time_and_a_duration_or_refused(text: str) -> None:
    for parse in (duration_ms, lambda given: moment_ms(given, 0)):
        with contextlib.suppress(BadValue):
            assert isinstance(parse(text), int)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("now", 1_700_000_000_000),
        ("now-15m", 1_699_999_100_000),
        ("now-PT1H", 1_699_996_400_000),
        ("now+1s", 1_700_000_001_000),
        ("1699999999999", 1_699_999_999_999),
        ("1970-01-01T00:00:00.001Z", 1),
    ],
)
def test_a_moment_is_iso_milliseconds_or_relative(text: str, milliseconds: int) -> None:
    assert moment_ms(text, 1_700_000_000_000) == milliseconds


@pytest.mark.parametrize("text", ["now-", "now-15", "now15m", "1699999999", "16999999999999999"])
def test_an_unclear_moment_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        moment_ms(text, 0)
