"""Rates: never negative, sums are kept, and what a window covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.watch.groups import GroupsWatch
from kgctl.watch.rates import WINDOW_S, Pace, eta_s, gone_forward
from tests.kgctl.watch.looks import group, look, partition

offsets = st.one_of(st.none(), st.integers(0, 1 << 62))
# One look: of some partitions the commit and the log end.
looks = st.lists(st.dictionaries(st.integers(0, 4), st.tuples(offsets, offsets), max_size=5), min_size=2, max_size=40)
steps = st.lists(st.tuples(st.floats(0.1, 20), st.integers(0, 1000), st.integers(0, 1000)), min_size=2, max_size=60)


@given(looks, st.floats(0.1, 30))
def test_no_rate_is_ever_negative_whatever_offsets_do(
    seen: list[dict[int, tuple[int | None, int | None]]], step: float
) -> None:
    watch = GroupsWatch()
    for place, found in enumerate(seen):
        rows = [partition(number, commit, end) for number, (commit, end) in found.items()]
        (row,) = watch.add(look(place * step, group(partitions=rows)))
        assert row.rate_in is None or row.rate_in >= 0
        assert row.rate_out is None or row.rate_out >= 0


@given(steps)
def test_the_records_of_a_window_are_those_that_came_after_its_first_look(seen: list[tuple[float, int, int]]) -> None:
    pace, at_s = Pace(), 0.0
    pace.add(at_s, None, None, 0)
    each = []
    for step, came, went in seen:
        at_s += step
        each.append((at_s, came, went))
        pace.add(at_s, came, went, 0)
        begin_s = at_s - pace.span_s
        within = [found for found in each if found[0] > begin_s + 1e-6]
        assert (pace.came, pace.went) == (sum(found[1] for found in within), sum(found[2] for found in within))
        assert pace.span_s <= WINDOW_S or pace.span_s == pytest.approx(step, abs=1e-6) or len(within) == 1
        assert pace.rate_in == pytest.approx(pace.came / pace.span_s)


@given(steps)
def test_a_window_keeps_few_looks_however_many_there_are(seen: list[tuple[float, int, int]]) -> None:
    pace = Pace()
    for place in range(2_000):
        pace.add(place * 0.1, 1, 1, 0)
    assert len(pace._samples) < 20
    assert pace.rate_in == pytest.approx(10.0)


@given(st.permutations(range(5)))
def test_the_order_of_partitions_changes_no_rate(order: list[int]) -> None:
    watch = GroupsWatch()
    watch.add(look(0, group(partitions=[partition(number, 0, 10 * number) for number in range(5)])))
    rows = [partition(number, number, 11 * number) for number in order]
    (row,) = watch.add(look(10, group(partitions=rows)))
    assert (row.rate_in, row.rate_out) == (1.0, 1.0)


def test_a_partition_counts_from_the_second_look_on_that_knows_it() -> None:
    watch = GroupsWatch()
    (first,) = watch.add(look(0, group(partitions=[partition(0, 5, 10)])))
    assert (first.rate_in, first.rate_out) == (None, None)
    (second,) = watch.add(look(10, group(partitions=[partition(0, 15, 30), partition(1, 1_000_000, 2_000_000)])))
    assert (second.rate_in, second.rate_out) == (2.0, 1.0)
    (third,) = watch.add(look(20, group(partitions=[partition(0, 15, 30), partition(1, 1_000_020, 2_000_040)])))
    assert (third.rate_in, third.rate_out) == (3.0, 1.5)


def test_a_reset_backwards_and_a_recreated_topic_are_no_records() -> None:
    watch = GroupsWatch()
    watch.add(look(0, group(partitions=[partition(0, 900, 1_000), partition(1, 900, 1_000)])))
    (row,) = watch.add(look(10, group(partitions=[partition(0, 0, 1_000), partition(1, 900, 5)])))
    assert (row.rate_in, row.rate_out, row.lag) == (0.0, 0.0, 1_000)
    (row,) = watch.add(look(20, group(partitions=[partition(0, 100, 1_000), partition(1, 900, 25)])))
    assert (row.rate_in, row.rate_out) == (1.0, 5.0)


def test_where_commits_are_not_known_only_what_comes_in_has_a_rate() -> None:
    watch = GroupsWatch()
    watch.add(look(0, group(partitions=[partition(0, None, 10)])))
    (row,) = watch.add(look(10, group(partitions=[partition(0, None, 20)])))
    assert (row.rate_in, row.rate_out, row.lag) == (1.0, None, None)


def test_a_look_that_is_not_later_changes_nothing() -> None:
    watch = GroupsWatch()
    watch.add(look(0, group(partitions=[partition(0, 0, 0)])))
    (row,) = watch.add(look(10, group(partitions=[partition(0, 10, 10)])))
    for at_s in (10, 5):
        (again,) = watch.add(look(at_s, group(partitions=[partition(0, 99, 99)])))
        assert (again.rate_in, again.rate_out) == (row.rate_in, row.rate_out) == (1.0, 1.0)
    (row,) = watch.add(look(20, group(partitions=[partition(0, 20, 40)])))
    assert (row.rate_in, row.rate_out) == (2.0, 1.0)


def test_offsets_go_forward_or_not_at_all() -> None:
    assert [gone_forward(*pair) for pair in ((1, 3), (3, 1), (1, 1), (None, 1), (1, None))] == [2, 0, 0, None, None]


def test_the_time_that_is_left_is_known_only_while_the_lag_shrinks() -> None:
    assert eta_s(100, 10.0, 20.0) == 10.0
    assert [eta_s(100, 20.0, 20.0), eta_s(100, 20.0, 19.0), eta_s(100, None, 1.0), eta_s(None, 1.0, 2.0)] == [None] * 4
    assert [eta_s(0, 1.0, 1.0), eta_s(-5, None, None)] == [0.0, 0.0]
