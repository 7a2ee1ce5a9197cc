"""The points in time at which lag is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipelines.jobs.grid import MOST_POINTS, points, wide_enough

times = st.integers(0, 4_000_000_000_000)


def test_points_are_multiples_of_the_step_from_the_first_commit_on_and_now() -> None:
    assert points(10_500, None, 14_200, 1000) == [11_000, 12_000, 13_000, 14_000, 14_200]


def test_a_later_run_goes_on_behind_the_last_point() -> None:
    assert points(10_500, 12_000, 14_000, 1000) == [13_000, 14_000]
    assert points(10_500, 14_000, 14_000, 1000) == []


def test_now_is_a_point_even_where_no_multiple_lies_in_between() -> None:
    assert points(10_500, None, 10_700, 1000) == [10_700]


def test_a_step_that_is_shorter_than_a_millisecond_is_one() -> None:
    assert points(10, None, 13, 0) == [10, 11, 12, 13]


def test_a_commit_of_the_future_has_no_points() -> None:
    assert points(10_500, None, 10_499, 1000) == []


def test_a_long_time_gets_a_longer_step_in_round_numbers() -> None:
    assert wide_enough(MOST_POINTS * 1000 - 1, 1000) == 1000
    assert wide_enough(MOST_POINTS * 1000, 1000) == 2000
    assert wide_enough(86_400_000, 1000) == 300_000


@given(first=times, told=st.none() | times, now=times, step=st.integers(1, 100_000_000))
def test_points_rise_up_to_now_are_few_and_overlap_with_no_earlier_run(
    first: int, told: int | None, now: int, step: int
) -> None:
    found = points(first, told, now, step)
    assert found == sorted(set(found))
    assert len(found) <= MOST_POINTS + 1
    if found:
        assert found[-1] == now
        assert found[0] >= first
        assert told is None or found[0] > told
    else:
        assert now < first or (told is not None and now <= told)
