"""Rates: never negative, complete within a window, and bounded in memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.watch.groups import GroupsWatch
from kgctl.watch.rates import LEAST_SPAN_S, WINDOW_S, Throughput, advance, eta_s
from tests.kgctl.watch.snapshots import group, partition, snapshot

offsets = st.one_of(st.none(), st.integers(0, 1 << 62))
# One snapshot: the commit and the log end of some partitions.
snapshots = st.lists(
    st.dictionaries(st.integers(0, 4), st.tuples(offsets, offsets), max_size=5), min_size=2, max_size=40
)
steps = st.lists(st.tuples(st.floats(0.1, 20), st.integers(0, 1000), st.integers(0, 1000)), min_size=2, max_size=60)


@given(snapshots, st.floats(0.1, 30))
def test_no_rate_is_ever_negative(offsets_found: list[dict[int, tuple[int | None, int | None]]], step: float) -> None:
    watch = GroupsWatch()
    for place, found in enumerate(offsets_found):
        rows = [partition(number, commit, end) for number, (commit, end) in found.items()]
        (row,) = watch.add(snapshot(place * step, group(partitions=rows)))
        assert row.rate_in is None or row.rate_in >= 0
        assert row.rate_out is None or row.rate_out >= 0


@given(steps)
def test_a_window_counts_the_records_after_its_first_snapshot(found: list[tuple[float, int, int]]) -> None:
    throughput, at_s = Throughput(), 0.0
    throughput.add(at_s, None, None, 0)
    each = []
    for step, records_in, records_out in found:
        at_s += step
        each.append((at_s, records_in, records_out))
        throughput.add(at_s, records_in, records_out, 0)
        begin_s = at_s - throughput.span_s
        within = [one for one in each if one[0] > begin_s + 1e-6]
        assert (throughput.records_in, throughput.records_out) == (
            sum(one[1] for one in within),
            sum(one[2] for one in within),
        )
        assert throughput.span_s <= WINDOW_S or throughput.span_s == pytest.approx(step, abs=1e-6) or len(within) == 1
        if throughput.span_s < LEAST_SPAN_S:
            assert throughput.rate_in is throughput.rate_out is None
        else:
            assert throughput.rate_in == pytest.approx(throughput.records_in / throughput.span_s)


def test_a_fraction_of_a_second_shows_no_rate() -> None:
    watch = GroupsWatch()
    rates = []
    for at_s, end in ((0.0, 0), (0.4, 46), (2.0, 100), (4.0, 200)):
        (row,) = watch.add(snapshot(at_s, group(partitions=[partition(0, end, end)])))
        rates.append((row.rate_in, row.rate_out))
    assert rates == [(None, None)] * 3 + [(50.0, 50.0)]


def test_a_window_keeps_a_bounded_number_of_samples() -> None:
    throughput = Throughput()
    for place in range(2_000):
        throughput.add(place * 0.1, 1, 1, 0)
    assert len(throughput._samples) < 20
    assert throughput.rate_in == pytest.approx(10.0)


@given(st.permutations(range(5)))
def test_rates_do_not_depend_on_the_order_of_partitions(order: list[int]) -> None:
    watch = GroupsWatch()
    watch.add(snapshot(0, group(partitions=[partition(number, 0, 10 * number) for number in range(5)])))
    rows = [partition(number, number, 11 * number) for number in order]
    (row,) = watch.add(snapshot(10, group(partitions=rows)))
    assert (row.rate_in, row.rate_out) == (1.0, 1.0)


def test_a_partition_counts_from_its_second_snapshot() -> None:
    watch = GroupsWatch()
    (first,) = watch.add(snapshot(0, group(partitions=[partition(0, 5, 10)])))
    assert (first.rate_in, first.rate_out) == (None, None)
    (second,) = watch.add(snapshot(10, group(partitions=[partition(0, 15, 30), partition(1, 1_000_000, 2_000_000)])))
    assert (second.rate_in, second.rate_out) == (2.0, 1.0)
    (third,) = watch.add(snapshot(20, group(partitions=[partition(0, 15, 30), partition(1, 1_000_020, 2_000_040)])))
    assert (third.rate_in, third.rate_out) == (3.0, 1.5)


def test_a_reset_to_earlier_offsets_and_a_recreated_topic_count_as_no_records() -> None:
    watch = GroupsWatch()
    watch.add(snapshot(0, group(partitions=[partition(0, 900, 1_000), partition(1, 900, 1_000)])))
    (row,) = watch.add(snapshot(10, group(partitions=[partition(0, 0, 1_000), partition(1, 900, 5)])))
    assert (row.rate_in, row.rate_out, row.lag) == (0.0, 0.0, 1_000)
    (row,) = watch.add(snapshot(20, group(partitions=[partition(0, 100, 1_000), partition(1, 900, 25)])))
    assert (row.rate_in, row.rate_out) == (1.0, 5.0)


def test_without_commits_only_the_incoming_rate_is_known() -> None:
    watch = GroupsWatch()
    watch.add(snapshot(0, group(partitions=[partition(0, None, 10)])))
    (row,) = watch.add(snapshot(10, group(partitions=[partition(0, None, 20)])))
    assert (row.rate_in, row.rate_out, row.lag) == (1.0, None, None)


def test_a_snapshot_that_is_not_newer_is_ignored() -> None:
    watch = GroupsWatch()
    watch.add(snapshot(0, group(partitions=[partition(0, 0, 0)])))
    (row,) = watch.add(snapshot(10, group(partitions=[partition(0, 10, 10)])))
    for at_s in (10, 5):
        (again,) = watch.add(snapshot(at_s, group(partitions=[partition(0, 99, 99)])))
        assert (again.rate_in, again.rate_out) == (row.rate_in, row.rate_out) == (1.0, 1.0)
    (row,) = watch.add(snapshot(20, group(partitions=[partition(0, 20, 40)])))
    assert (row.rate_in, row.rate_out) == (2.0, 1.0)


def test_an_offset_that_moves_back_advances_by_zero() -> None:
    assert [advance(*pair) for pair in ((1, 3), (3, 1), (1, 1), (None, 1), (1, None))] == [2, 0, 0, None, None]


def test_the_eta_is_known_only_while_the_lag_shrinks() -> None:
    assert eta_s(100, 10.0, 20.0) == 10.0
    assert [eta_s(100, 20.0, 20.0), eta_s(100, 20.0, 19.0), eta_s(100, None, 1.0), eta_s(None, 1.0, 2.0)] == [None] * 4
    assert [eta_s(0, 1.0, 1.0), eta_s(-5, None, None)] == [0.0, 0.0]
