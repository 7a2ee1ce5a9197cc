"""BEHIND: for how long the oldest unread record of a group has waited."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.groups import GroupDescription
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.groups import GroupsWatch
from tests.kgctl.watch.snapshots import group, partition, snapshot

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOW = 1_000_000_000
Course = Callable[[float], GroupDescription]


def behind_s(seconds: int, course: Course, step: int = 2) -> float | None:
    watch = GroupsWatch()
    for at_s in range(0, seconds + 1, step):
        (row,) = watch.add(snapshot(at_s, course(at_s)))
    return row.behind_s


def two(
    at_s: float, stuck: int, end: float, committed_at: Mapping[TopicPartition, int], **fields: object
) -> GroupDescription:
    """A group that keeps up in partition 0 at 1,000 records/s, and has stopped at an offset of partition 1."""
    rows = [partition(0, 1_000_000 + int(1_000 * at_s), 1_000_010 + int(1_000 * at_s)), partition(1, stuck, int(end))]
    return replace(group(partitions=rows), clock_ms=NOW + int(at_s * 1000), committed_at=committed_at, **fields)


def test_a_group_is_as_far_behind_as_its_worst_partition() -> None:
    # 45 minutes at 10/s, which are 27 s at the rate of the whole group.
    def course(at_s: float) -> GroupDescription:
        return two(at_s, 1_000, 28_000 + 10 * at_s, {})

    assert behind_s(20, course) == pytest.approx(2_700 + 20)


def test_a_partition_that_stands_still_has_waited_since_its_last_commit() -> None:
    def course(at_s: float) -> GroupDescription:
        return two(at_s, 1_000, 1_500, {P1: NOW - 2_700_000}, recent_from={P0: 1_000_000, P1: 1_400})

    assert behind_s(0, course) == 2_700
    assert behind_s(100, course) == 2_800


def test_the_time_of_the_oldest_unread_record_counts_more_than_that_of_the_commit() -> None:
    def course(at_s: float) -> GroupDescription:
        return two(at_s, 1_000, 1_500, {P1: NOW - 2_700_000}, unread_since={P0: NOW - 1_000, P1: NOW - 600_000})

    assert behind_s(0, course) == 600


def test_an_old_commit_alone_does_not_make_a_new_record_old() -> None:
    def course(at_s: float) -> GroupDescription:
        return two(at_s, 1_000, 1_000 + (at_s >= 10), {P1: NOW - 2_700_000})

    found = behind_s(14, course)
    assert found is not None
    assert 4 <= found <= 6


def test_it_is_unknown_as_long_as_it_is_not_known_of_a_partition_with_lag() -> None:
    assert behind_s(0, lambda at_s: two(at_s, 1_000, 1_500, {})) is None
    assert behind_s(20, lambda at_s: two(at_s, 1_000, 1_500, {})) is None
    assert behind_s(0, lambda _: group(partitions=[partition(0, 5, 5)])) == 0
    assert behind_s(0, lambda _: group(partitions=[partition(0, None, 5)])) is None


def test_a_group_that_reads_a_finished_backlog_is_not_ahead_of_what_is_known() -> None:
    assert behind_s(20, lambda at_s: group(partitions=[partition(0, 100 + int(at_s), 900)])) is None


@given(st.integers(1, 500), st.integers(1, 200), st.integers(0, 60))
def test_with_even_arrivals_it_is_the_age_of_the_oldest_unread_record(rate: int, waited: int, pauses: int) -> None:
    def course(at_s: float) -> GroupDescription:
        end = 1_000_000 + int(at_s) * rate
        return group(partitions=[partition(0, end - waited * rate, end)])

    assert behind_s(80 + 2 * pauses, course) == pytest.approx(waited, abs=2.01)
