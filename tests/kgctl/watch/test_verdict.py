"""Verdicts: an example of each, both sides of each limit, and no alarm after one look."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription
from kgctl.model.watched import Verdict, WatchedGroup
from kgctl.watch.groups import GroupsWatch
from tests.kgctl.watch.looks import group, look, member, partition

Course = Callable[[float], GroupDescription]


def after(seconds: float, course: Course, step: float = 2) -> WatchedGroup:
    """The row after looks from 0 to `seconds`."""
    watch, at_s = GroupsWatch(), 0.0
    (row,) = watch.add(look(0, course(0)))
    while at_s < seconds:
        at_s = min(at_s + step, seconds)
        (row,) = watch.add(look(at_s, course(at_s)))
    return row


def said(row: WatchedGroup) -> tuple[Verdict, str]:
    return row.verdict, row.verdict_reason


def reading(rate_in: float, rate_out: float, lag: int = 0) -> Course:
    """A group with one partition, `lag` behind at 0 and steady from then on; never beyond the end."""

    def course(at_s: float) -> GroupDescription:
        end = 1_000_000 + int(rate_in * at_s)
        return group(partitions=[partition(0, min(1_000_000 - lag + int(rate_out * at_s), end), end)])

    return course


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.integers(0, 1_000_000))
def test_one_look_is_never_an_alarm_where_members_read(rate_in: float, rate_out: float, lag: int) -> None:
    assert after(0, reading(rate_in, rate_out, lag)).verdict is Verdict.OK


def test_a_group_without_lag_is_ok() -> None:
    assert said(after(10, reading(5, 5))) == (Verdict.OK, "no lag")
    assert said(after(10, lambda _: group("Empty", ()))) == (Verdict.OK, "no members, no lag")


def test_a_lag_says_when_it_is_not_known_whether_it_grows() -> None:
    assert said(after(0, reading(5, 5, 1_234))) == (Verdict.OK, "a lag of 1,234; whether it grows is not known yet")


# --- rebalancing ---


def test_a_rebalance_names_who_is_awaited_where_the_broker_tells() -> None:
    members = [
        member("c-1", phase="joined", heartbeat_age_ms=40_000, session_timeout_ms=45_000),
        member("c-2", phase="join awaited", heartbeat_age_ms=30_000, session_timeout_ms=45_000),
        member("c-3", phase="join awaited", heartbeat_age_ms=100, session_timeout_ms=45_000),
    ]
    row = after(12, lambda _: group("PreparingRebalance", members, state_since_ms=0))
    assert said(row) == (
        Verdict.REBALANCING,
        "PreparingRebalance for 12 s: 1 of 3 members joined, awaited: c-2 not heard of for 30 s, c-3",
    )
    members = [member("c-1", phase="synced"), member("c-2", phase="sync awaited")]
    row = after(0, lambda _: group("CompletingRebalance", members, state_since_ms=0))
    assert said(row) == (Verdict.REBALANCING, "CompletingRebalance for 0.0 s: 1 of 2 members synced, awaited: c-2")


def test_a_rebalance_elsewhere_says_how_long_it_was_seen() -> None:
    row = after(4, lambda _: group("PreparingRebalance"))
    assert said(row) == (Verdict.REBALANCING, "PreparingRebalance for at least 4.0 s, 1 member")
    row = after(4, lambda at_s: group("Stable" if at_s < 2 else "Reconciling"))
    assert said(row) == (Verdict.REBALANCING, "Reconciling for 2.0 s, 1 member")


# --- dead members ---


@pytest.mark.parametrize(
    ("session_ms", "age_ms", "is_dead"),
    [
        (45_000, 22_500, False),
        (45_000, 22_501, True),
        (6_000, 4_000, False),  # a heartbeat each 3 s may be late
        (6_000, 4_001, True),
        (2_000, 1_500, False),
        (2_000, 1_501, True),
    ],
)
def test_a_member_is_dead_after_half_its_session_without_a_heartbeat(
    session_ms: int, age_ms: int, is_dead: bool
) -> None:
    silent = member("c-2", phase="stable", heartbeat_age_ms=age_ms, session_timeout_ms=session_ms)
    row = after(0, lambda _: group(members=[member("c-1"), silent]))
    assert row.verdict is (Verdict.DEAD_MEMBERS if is_dead else Verdict.OK)


def test_dead_members_are_named_with_their_ages_and_many_are_counted() -> None:
    members = [member(f"c-{n}", heartbeat_age_ms=9_000, session_timeout_ms=10_000) for n in range(5)]
    row = after(0, lambda _: group(members=members[:1]))
    assert said(row) == (Verdict.DEAD_MEMBERS, "c-0 not heard of for 9.0 s of a session of 10 s")
    assert after(0, lambda _: group(members=members)).verdict_reason.endswith(" and 2 more")


# --- stuck ---


@pytest.mark.parametrize(("seconds", "expected"), [(89.9, Verdict.OK), (90, Verdict.STUCK)])
def test_a_partition_that_is_behind_and_does_not_move_is_stuck_after_90_s(seconds: float, expected: Verdict) -> None:
    assert after(seconds, reading(0, 0, 1_204)).verdict is expected


def test_a_stuck_group_names_the_partition_that_is_most_behind() -> None:
    rows = [partition(0, 5, 6), partition(1, 5, 1_209, "c-2"), partition(2, 9, 9)]
    row = after(92, lambda _: group(partitions=rows))
    assert said(row) == (
        Verdict.STUCK,
        "orders 1, read by c-2, has not moved for 92 s at a lag of 1,204; so have 1 other partition",
    )


def test_a_partition_is_stuck_though_the_others_move() -> None:
    def course(at_s: float) -> GroupDescription:
        moving = 1_000 + int(at_s) * 10
        return group(partitions=[partition(0, moving, moving), partition(1, 5, 6)])

    assert after(100, course).verdict is Verdict.STUCK


def test_a_leader_that_does_not_answer_now_and_then_hides_no_partition_that_is_stuck() -> None:
    def course(at_s: float) -> GroupDescription:
        return group(partitions=[partition(0, 5, None if at_s % 20 == 10 else 9)])

    assert after(89, course).verdict is not Verdict.STUCK
    assert after(92, course).verdict is Verdict.STUCK
    # While it does not, nobody knows what is left to read.
    assert after(110, course).verdict is not Verdict.STUCK


@pytest.mark.parametrize("changing", ["commit", "no lag"])
def test_a_partition_that_moved_or_had_nothing_to_read_in_the_last_90_s_is_not_stuck(changing: str) -> None:
    def course(at_s: float) -> GroupDescription:
        late = at_s >= 20
        if changing == "commit":
            return group(partitions=[partition(0, 6 if late else 5, 10)])
        return group(partitions=[partition(0, 5, 10 if late else 5)])

    assert after(109, course).verdict is not Verdict.STUCK
    assert after(110, course).verdict is Verdict.STUCK


@pytest.mark.parametrize(("empty_s", "expected"), [(89.9, Verdict.LAGGING), (90, Verdict.STUCK)])
@pytest.mark.parametrize("told", [True, False])
def test_a_lag_that_nobody_reads_is_stuck_once_there_were_no_members_for_90_s(
    empty_s: float, expected: Verdict, told: bool
) -> None:
    rows = [partition(0, 5, 1_005, None)]
    if told:
        (row,) = GroupsWatch().add(look(empty_s, group("Empty", (), rows, state_since_ms=0)))
    else:
        row = after(empty_s, lambda _: group("Empty", (), rows))
    assert row.verdict is expected
    least = "" if told else "at least "
    assert row.verdict_reason.endswith(f"no members for {least}90 s, a lag of 1,000")


def test_who_saw_the_last_member_go_knows_for_how_long_there_is_none() -> None:
    rows = [partition(0, 5, 1_005, None)]
    row = after(60, lambda at_s: group("Empty", (), rows) if at_s >= 20 else group(partitions=[partition(0, 5, 1_005)]))
    assert row.verdict_reason == "no members for 40 s, a lag of 1,000"


def test_who_commits_without_being_a_member_reads_all_the_same() -> None:
    def course(at_s: float) -> GroupDescription:
        return group("Empty", (), [partition(0, int(at_s) * 10, int(at_s) * 10 + 5, None)])

    assert after(60, course).verdict is Verdict.OK


# --- lagging ---


@pytest.mark.parametrize(
    ("rate_out", "expected"), [(100, Verdict.OK), (91, Verdict.OK), (89, Verdict.LAGGING), (0.1, Verdict.LAGGING)]
)
def test_a_lag_that_grows_by_more_than_a_tenth_of_what_comes_in_is_lagging(rate_out: float, expected: Verdict) -> None:
    assert after(60, reading(100, rate_out, 10)).verdict is expected


def test_lagging_needs_looks_over_30_s() -> None:
    assert after(29.9, reading(100, 50)).verdict is Verdict.OK
    row = after(30, reading(100, 50))
    assert said(row) == (Verdict.LAGGING, "a lag of 1,500 grows by 50/s: 100/s in, 50/s out")


@pytest.mark.parametrize(
    ("lags", "expected"),
    [
        ([0, 0, 0, 0, 0, 0, 900], Verdict.OK),  # many records have just come at once
        ([10, 900, 10, 20, 300, 600, 890], Verdict.OK),  # there was more to read before
        ([10, 100, 200, 300, 400, 500, 600], Verdict.LAGGING),
    ],
)
def test_a_lag_grows_if_all_of_it_is_above_what_it_was(lags: list[int], expected: Verdict) -> None:
    def course(at_s: float) -> GroupDescription:
        end = 1_000 + int(at_s) * 90
        return group(partitions=[partition(0, end - lags[int(at_s // 10)], end)])

    assert after(60, course, step=10).verdict is expected


@pytest.mark.parametrize(("lag", "expected"), [(8_990, Verdict.OK), (9_010, Verdict.LAGGING)])
def test_a_lag_of_more_than_a_minute_and_a_half_of_records_is_lagging_though_it_does_not_grow(
    lag: int, expected: Verdict
) -> None:
    assert after(60, reading(100, 100, lag)).verdict is expected


def test_a_group_that_catches_up_is_ok_and_says_how_long_it_will_take() -> None:
    row = after(60, reading(100, 200, 100_000))
    assert said(row) == (Verdict.OK, "a lag of 94,000 shrinks, 16 min left: 100/s in, 200/s out")
    assert after(60, reading(0, 200, 100_000)).verdict is Verdict.OK


@given(st.integers(100, 5_000), st.floats(0.5, 5) | st.floats(5, 65), st.floats(1, 5))
def test_commits_each_5_s_or_each_minute_are_no_reason_for_alarm(rate: int, every_s: float, step: float) -> None:
    """A consumer that keeps up: its lag falls to nothing with each commit and grows in between."""

    def course(at_s: float) -> GroupDescription:
        return group(partitions=[partition(0, int(at_s // every_s * every_s * rate), int(at_s * rate))])

    watch = GroupsWatch()
    for place in range(140):
        (row,) = watch.add(look(place * step, course(place * step)))
        assert row.verdict is Verdict.OK, row.verdict_reason


# --- errors ---


def test_a_partition_that_a_member_owns_and_that_cannot_be_asked_is_an_error() -> None:
    error = RowError("LEADER_NOT_AVAILABLE", "no leader")
    row = after(0, lambda _: group(partitions=[partition(3, 5, None, error=error)]))
    assert said(row) == (Verdict.ERROR, "orders 3: no leader")
    row = after(0, lambda _: group(partitions=[partition(3, 5, None, owner=None, error=error)]))
    assert row.verdict is Verdict.OK
