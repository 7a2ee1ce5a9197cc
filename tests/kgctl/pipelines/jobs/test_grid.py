"""The points in time at which lag is computed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipelines.jobs.grid import MAX_POINTS, end_of_points, points, wide_enough

times = st.integers(0, 4_000_000_000_000)


def test_points_are_multiples_of_the_step_after_the_first_commit_and_now() -> None:
    assert points(10_500, None, 14_200, 1000) == [11_000, 12_000, 13_000, 14_000, 14_200]


def test_a_later_run_continues_after_the_last_point() -> None:
    assert points(10_500, 12_000, 14_000, 1000) == [13_000, 14_000]
    assert points(10_500, 14_000, 14_000, 1000) == []


def test_a_run_that_follows_adds_points_a_step_apart_and_now_only_at_first() -> None:
    first_ms, step_ms, trigger_ms = 60_000, 60_000, 10_000
    last: int | None = None
    found = []
    for now in range(first_ms + 5_000, first_ms + 605_000, trigger_ms):
        found += points(first_ms, last, end_of_points(last, now, step_ms, follow=True), step_ms)
        last = found[-1]
    assert found == [60_000, 65_000, *range(120_000, 600_001, 60_000)]
    assert end_of_points(65_000, 72_000, step_ms, follow=False) == 72_000


def test_now_is_a_point_even_without_a_multiple_before_it() -> None:
    assert points(10_500, None, 10_700, 1000) == [10_700]


def test_the_step_is_at_least_a_millisecond() -> None:
    assert points(10, None, 13, 0) == [10, 11, 12, 13]


def test_a_commit_in_the_future_has_no_points() -> None:
    assert points(10_500, None, 10_499, 1000) == []


def test_a_long_time_span_gets_a_longer_round_step() -> None:
    assert wide_enough(MAX_POINTS * 1000 - 1, 1000) == 1000
    assert wide_enough(MAX_POINTS * 1000, 1000) == 2000
    assert wide_enough(86_400_000, 1000) == 300_000


@given(first=times, last=st.none() | times, now=times, step=st.integers(1, 100_000_000))
def test_points_rise_to_now_are_few_and_do_not_overlap_with_an_earlier_run(
    first: int, last: int | None, now: int, step: int
) -> None:
    found = points(first, last, now, step)
    assert found == sorted(set(found))
    assert len(found) <= MAX_POINTS + 1
    if found:
        assert found[-1] == now
        assert found[0] >= first
        assert last is None or found[0] > last
    else:
        assert now < first or (last is not None and now <= last)
