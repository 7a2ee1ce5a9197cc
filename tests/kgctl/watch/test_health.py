"""Health: an example of each word, both sides of each limit, and no alarm after one snapshot."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription
from kgctl.model.health import Health
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import WatchedGroup
from kgctl.tui.widgets.groups.columns import why
from kgctl.watch.groups import GroupsWatch
from tests.kgctl.watch.snapshots import group, member, partition, snapshot

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
Course = Callable[[float], GroupDescription]


def after(seconds: float, course: Course, step: float = 2) -> WatchedGroup:
    """The row after snapshots from 0 to `seconds`, `step` apart."""
    watch, at_s = GroupsWatch(), 0.0
    (row,) = watch.add(snapshot(0, course(0)))
    while at_s < seconds:
        at_s = min(at_s + step, seconds)
        (row,) = watch.add(snapshot(at_s, course(at_s)))
    return row


def judged(row: WatchedGroup) -> tuple[Health | None, str]:
    return row.health, row.health_reason


def reading(rate_in: float, rate_out: float, lag: int = 0) -> Course:
    """A group with one partition: `lag` at 0 and constant rates from then on; commits never pass the log end."""

    def course(at_s: float) -> GroupDescription:
        end = 1_000_000 + int(rate_in * at_s)
        return group(partitions=[partition(0, min(1_000_000 - lag + int(rate_out * at_s), end), end)])

    return course


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.integers(0, 1_000_000))
def test_one_snapshot_never_raises_an_alarm_about_lag(rate_in: float, rate_out: float, lag: int) -> None:
    assert after(0, reading(rate_in, rate_out, lag)).health is (None if lag else Health.OK)


def test_a_group_without_lag_is_ok() -> None:
    assert judged(after(10, reading(5, 5))) == (Health.OK, "no lag")
    without = group("Empty", (), [partition(0, 5, 5, None)])
    assert judged(after(10, lambda _: without)) == (Health.OK, "no members, no lag")


def test_a_group_that_has_neither_members_nor_commits_has_no_verdict() -> None:
    row = after(200, lambda _: group("Empty", ()))
    assert judged(row) == (None, "no members and no committed offsets, so what it reads is not known")
    assert (row.lag, row.evidence, row.health_brief) == (None, None, "nothing is committed")


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance"])
def test_a_group_that_never_committed_does_not_recover_when_its_members_die(state: str) -> None:
    def course(at_s: float) -> GroupDescription:
        if at_s < 100:
            return group(partitions=[partition(0, None, 1_000 + int(at_s))])
        return group(state) if at_s < 101 and state != "Stable" else group("Empty", ())

    assert after(99, course, 1).health is Health.NEVER_COMMITTED
    row = after(102, course, 1)
    if state == "Stable":
        assert row.health is Health.NEVER_COMMITTED
    else:
        assert row.health_reason.startswith("judging 1/90 s: no commit at all, up to 1,099 unread records when ")
    row = after(195, course, 1)
    assert judged(row) == (
        Health.NEVER_COMMITTED,
        f"no commit at all, up to 1,099 unread records when the last member left {95 if state == 'Stable' else 94} s ago",
    )
    assert (row.lag, row.unread) == (None, 1_099)


def test_a_group_keeps_its_verdict_between_two_commits() -> None:
    """It commits every 80 s, for longer than rates cover."""

    def course(per_commit: int) -> Course:
        return lambda at_s: group(partitions=[partition(0, int(at_s // 80) * per_commit, 20_000 + int(at_s) * 100)])

    row = after(155, course(4_000))
    assert judged(row) == (Health.LAGGING, "lag 31,500, no commit for 75 s, LAGGING before")
    assert row.health_brief == "no commit for 75 s"
    assert after(70, course(4_000)).health is None
    assert after(155, course(20_000)).health is Health.OK
    # A single move may be a reset.
    moved = after(75, lambda at_s: group(partitions=[partition(0, 5 if at_s < 4 else 10, 1_000)]), 2)
    assert moved.health is not Health.LAGGING


def test_a_lagging_group_does_not_recover_when_it_stops_to_commit() -> None:
    """Its last commit is less than 90 s old, and so are the records that it has not read."""

    def course(at_s: float) -> GroupDescription:
        rows = [partition(0, min(1_000 + int(at_s) * 2, 1_080), 1_000 + int(at_s) * 50)]
        return group(partitions=rows, clock_ms=int(at_s * 1_000) + 60_000, unread_since={P0: int(at_s) * 1_000})

    assert after(28, course).health is Health.OK
    assert [after(at_s, course).health for at_s in (40, 90, 104, 126)] == [Health.LAGGING] * 4
    assert after(126, course).health_reason == "lag 6,220, no commit for 86 s, LAGGING before"
    assert after(130, course).health is Health.STALLED


def recent_at_first(commits: Callable[[float], int], recent_from: int) -> Course:
    """Partition 0 with 1,000 records; the first snapshot says that the recent ones begin at `recent_from`. Partition 1 is read."""

    def course(at_s: float) -> GroupDescription:
        end = 500 if at_s == 0 else 501
        partitions = [partition(0, commits(at_s), 1_000), partition(1, 500, end)]
        times = {P0: 0, P1: 0} if commits(0) < recent_from else {}
        recent = {} if at_s else {P0: recent_from}
        return group(partitions=partitions, committed_at=times, clock_ms=int(1000 * (at_s + 100)), recent_from=recent)

    return course


def test_what_the_first_snapshot_proves_holds_until_snapshots_show_more() -> None:
    stuck = recent_at_first(lambda _: 100, 900)
    assert [after(at_s, stuck).health for at_s in (0, 2, 40, 80)] == [Health.STALLED] * 4
    reads = recent_at_first(lambda at_s: 900 + int(at_s), 900)
    assert [after(at_s, reads).health for at_s in (0, 2, 28)] == [Health.OK] * 3
    assert after(2, reads).health_reason == "lag 99; no unread record is older than 92 s"


def test_after_one_snapshot_the_reason_says_that_growth_is_unknown() -> None:
    row = after(0, reading(5, 5, 1_234))
    assert judged(row) == (None, "judging 0/30 s: lag 1,234, whether it grows is not known yet")
    assert row.evidence == (0, 30)
    row = after(12, reading(5, 5, 1_234))
    assert judged(row) == (None, "judging 12/30 s: lag 1,234, last commit 0.0 s ago; whether it grows is not known yet")
    row = after(40, reading(5, 0, 1_234))
    assert judged(row) == (None, "judging 40/90 s: lag 1,434, whether it grows is not known yet")


# --- rebalancing ---


def test_a_rebalance_names_the_members_it_waits_for() -> None:
    members = [
        member("c-1", phase="joined", heartbeat_age_ms=40_000, session_timeout_ms=45_000),
        member("c-2", phase="join awaited", heartbeat_age_ms=30_000, session_timeout_ms=45_000),
        member("c-3", phase="join awaited", heartbeat_age_ms=100, session_timeout_ms=45_000),
    ]
    row = after(12, lambda _: group("PreparingRebalance", members, state_since_ms=0))
    assert judged(row) == (
        Health.REBALANCING,
        "PreparingRebalance for 12 s: 1 of 3 members joined, waiting for c-2: no heartbeat for 30 s, c-3",
    )
    members = [member("c-1", phase="synced"), member("c-2", phase="sync awaited")]
    row = after(0, lambda _: group("CompletingRebalance", members, state_since_ms=0))
    assert judged(row) == (Health.REBALANCING, "CompletingRebalance for 0.0 s: 1 of 2 members synced, waiting for c-2")


def test_elsewhere_a_rebalance_says_how_long_it_was_observed() -> None:
    row = after(4, lambda _: group("PreparingRebalance"))
    assert judged(row) == (Health.REBALANCING, "PreparingRebalance for at least 4.0 s, 1 member")
    row = after(4, lambda at_s: group("Stable" if at_s < 2 else "Reconciling"))
    assert judged(row) == (Health.REBALANCING, "Reconciling for 2.0 s, 1 member")


# --- silent members ---


@pytest.mark.parametrize(
    ("session_ms", "age_ms", "is_silent"),
    [
        (45_000, 22_500, False),
        (45_000, 22_501, True),
        (6_000, 4_000, False),  # a heartbeat every 3 s may be late
        (6_000, 4_001, True),
        (2_000, 1_500, False),
        (2_000, 1_501, True),
    ],
)
def test_a_member_is_silent_after_half_its_session_timeout_without_a_heartbeat(
    session_ms: int, age_ms: int, is_silent: bool
) -> None:
    silent = member("c-2", phase="stable", heartbeat_age_ms=age_ms, session_timeout_ms=session_ms)
    row = after(0, lambda _: group(members=[member("c-1"), silent]))
    assert row.health is (Health.SILENT if is_silent else Health.OK)


def test_silent_members_are_named_up_to_three() -> None:
    members = [member(f"c-{n}", heartbeat_age_ms=9_000, session_timeout_ms=10_000) for n in range(5)]
    row = after(0, lambda _: group(members=members[:1]))
    assert judged(row) == (Health.SILENT, "c-0: no heartbeat for 9.0 s, evicted in 1.0 s")
    assert after(0, lambda _: group(members=members)).health_reason.endswith(" and 2 more")


# --- stalled and stopped ---


@pytest.mark.parametrize(("seconds", "expected"), [(89.9, None), (90, Health.STALLED)])
def test_a_partition_with_lag_is_stalled_after_90_s_without_a_move(seconds: float, expected: Health | None) -> None:
    assert after(seconds, reading(0, 0, 1_204)).health is expected


def test_a_stalled_group_names_the_partition_with_the_largest_lag() -> None:
    rows = [partition(0, 5, 6), partition(1, 5, 1_209, "c-2"), partition(2, 9, 9)]
    row = after(92, lambda _: group(partitions=rows))
    assert judged(row) == (
        Health.STALLED,
        "orders 1 (owned by c-2): no commit for 92 s, lag 1,204; 1 other partition likewise",
    )


def test_the_owner_of_a_stalled_partition_has_its_short_name() -> None:
    ids = [f"app-{number}-00000000-0000-0000-0000-00000000000{number}" for number in (1, 2)]
    rows = [partition(0, 5, 9, ids[0])]
    row = after(92, lambda _: group(members=[member(ids[0]), member(ids[1])], partitions=rows))
    assert row.health_reason.startswith("orders 0 (owned by app-1): ")
    twins = [ids[0], "app-1-00000000-0000-0000-0000-000000000009"]
    row = after(92, lambda _: group(members=map(member, twins), partitions=rows))
    assert row.health_reason.startswith(f"orders 0 (owned by {ids[0]}): ")


def test_a_partition_is_stalled_although_others_move() -> None:
    def course(at_s: float) -> GroupDescription:
        moving = 1_000 + int(at_s) * 10
        return group(partitions=[partition(0, moving, moving), partition(1, 5, 6)])

    assert after(100, course).health is Health.STALLED


def test_an_occasional_failure_of_the_leader_does_not_hide_a_stalled_partition() -> None:
    def course(at_s: float) -> GroupDescription:
        return group(partitions=[partition(0, 5, None if at_s % 20 == 10 else 9)])

    assert after(89, course).health is not Health.STALLED
    assert after(92, course).health is Health.STALLED
    # While the leader fails, the lag is not known.
    assert after(110, course).health is not Health.STALLED


@pytest.mark.parametrize("changing", ["commit", "no lag"])
def test_a_partition_that_moved_or_had_no_lag_within_90_s_is_not_stalled(changing: str) -> None:
    def course(at_s: float) -> GroupDescription:
        late = at_s >= 20
        if changing == "commit":
            return group(partitions=[partition(0, 6 if late else 5, 10)])
        return group(partitions=[partition(0, 5, 10 if late else 5)])

    assert after(109, course).health is not Health.STALLED
    assert after(110, course).health is Health.STALLED


@pytest.mark.parametrize(("empty_s", "expected"), [(89.9, None), (90, Health.STOPPED)])
@pytest.mark.parametrize("is_reported", [True, False])
def test_a_group_with_lag_is_stopped_after_90_s_without_members(
    empty_s: float, expected: Health | None, is_reported: bool
) -> None:
    rows = [partition(0, 5, 1_005, None)]
    if is_reported:
        (row,) = GroupsWatch().add(
            snapshot(empty_s, group("Empty", (), rows, state_since_ms=0, clock_ms=int(empty_s * 1000)))
        )
    else:
        row = after(empty_s, lambda _: group("Empty", (), rows))
    assert row.health is expected
    least = "" if is_reported else "at least "
    assert row.health_reason.endswith(f"no members for {least}90 s, lag 1,000")


def test_the_time_without_members_is_exact_if_a_snapshot_showed_the_last_member() -> None:
    rows = [partition(0, 5, 1_005, None)]
    row = after(60, lambda at_s: group("Empty", (), rows) if at_s >= 20 else group(partitions=[partition(0, 5, 1_005)]))
    assert row.health_reason == "judging 40/90 s: no members for 40 s, lag 1,000"


def test_what_members_committed_before_they_died_does_not_mean_that_the_group_is_read() -> None:
    def course(at_s: float) -> GroupDescription:
        commit, end = 500 + min(int(at_s), 20) * 10, 500 + int(at_s) * 10
        members = [member("c-1")] if at_s < 30 else []
        return group("Stable" if members else "Empty", members, [partition(0, commit, end, "c-1" if members else None)])

    assert after(18, course).health is Health.OK
    assert judged(after(30, course)) == (None, "judging 10/90 s: no members, lag 100, last commit 10 s ago")
    assert judged(after(60, course)) == (None, "judging 40/90 s: no members for 30 s, lag 400, last commit 40 s ago")
    assert after(120, course).health is Health.STOPPED


def test_commits_without_members_mean_that_the_group_is_read() -> None:
    def course(at_s: float) -> GroupDescription:
        return group("Empty", (), [partition(0, int(at_s) * 10, int(at_s) * 10 + 5, None)])

    assert after(60, course).health is Health.OK


_DOWN = RowError("NOT_LEADER", "it is not the leader")


def _waiting(*names: str) -> GroupDescription:
    waits = [member(f"{name}-00000000-0000-0000-0000-000000000001", phase="join awaited") for name in names]
    return group("PreparingRebalance", [member("c-1", phase="joined"), *waits], state_since_ms=0)


def _silent(*names: str) -> GroupDescription:
    return group(members=[member(name, heartbeat_age_ms=6_000, session_timeout_ms=10_000) for name in names])


@pytest.mark.parametrize(
    ("seconds", "course", "brief"),
    [
        (12, reading(0, 0, 4), "judging 12/30 s"),
        (92, reading(0, 0, 1_204), "no commit for 92 s on orders 0"),
        (92, lambda _: group("Empty", (), [partition(0, 5, 1_005, None)]), "no members for 92 s"),
        (0, lambda _: _waiting("c-2"), "1/2 joined, waits for c-2"),
        (0, lambda _: _waiting("c-2", "c-3"), "1/3 joined, waits for 2"),
        (0, lambda _: _silent("c-2"), "evicted in 4.0 s: c-2"),
        (0, lambda _: _silent("c-2", "c-3"), "evicted in 4.0 s: 2 members"),
        (0, lambda _: group(partitions=[partition(0, None, None, error=_DOWN)]), "orders 0: NOT_LEADER"),
        (0, lambda _: group(error=RowError("NOT_COORDINATOR", "the group moved to another broker")), "NOT_COORDINATOR"),
        (0, lambda _: group(partitions=[partition(0, 9, 5)]), "a commit past the log end"),
        (0, lambda _: group(type="Share"), "the lag is not known"),
        (60, reading(100, 50, 10), "grows by 50/s"),
        (60, reading(100, 100, 9_010), "does not shrink"),
        (60, reading(100, 100), ""),
    ],
)
def test_the_brief_reason_repeats_neither_the_lag_nor_the_verdict(seconds: float, course: Course, brief: str) -> None:
    row = after(seconds, course)
    assert row.health_brief == brief
    cells = why(row, 30, has_verdict=False)
    assert len(cells) <= 30
    assert brief in cells
    if row.health not in (None, Health.OK):
        assert why(row, 200, has_verdict=False) == f"{row.health.lower()}: {row.health_reason}"


# --- lagging ---


@pytest.mark.parametrize(
    ("rate_out", "expected"), [(100, Health.OK), (91, Health.OK), (89, Health.LAGGING), (0.1, Health.LAGGING)]
)
def test_lag_that_grows_by_more_than_a_tenth_of_the_incoming_rate_is_lagging(rate_out: float, expected: Health) -> None:
    assert after(60, reading(100, rate_out, 10)).health is expected


def test_lagging_needs_snapshots_over_30_s() -> None:
    row = after(29.9, reading(100, 50))
    assert judged(row) == (Health.OK, "lag 1,495; no lag 30 s ago")
    assert after(29.9, reading(100, 50, 1)).health is None
    row = after(30, reading(100, 50))
    assert judged(row) == (Health.LAGGING, "lag 1,500 grows by 50/s: 100/s in, 50/s out")


@pytest.mark.parametrize(
    ("lags", "expected"),
    [
        ([0, 0, 0, 0, 0, 0, 900], Health.OK),  # a burst of records has just arrived
        ([10, 900, 10, 20, 300, 600, 890], Health.OK),  # the lag was larger before
        ([10, 100, 200, 300, 400, 500, 600], Health.LAGGING),
    ],
)
def test_lag_grows_only_if_all_newer_values_exceed_the_older_ones(lags: list[int], expected: Health) -> None:
    def course(at_s: float) -> GroupDescription:
        end = 1_000 + int(at_s) * 90
        return group(partitions=[partition(0, end - lags[int(at_s // 10)], end)])

    assert after(60, course, step=10).health is expected


@pytest.mark.parametrize(("lag", "expected"), [(8_990, Health.OK), (9_010, Health.LAGGING)])
def test_lag_of_more_than_90_s_of_records_is_lagging_although_it_does_not_grow(lag: int, expected: Health) -> None:
    assert after(60, reading(100, 100, lag)).health is expected


def test_a_group_that_catches_up_is_ok_and_has_an_eta() -> None:
    row = after(60, reading(100, 200, 100_000))
    assert judged(row) == (Health.OK, "lag 94,000 shrinks, 16 min left: 100/s in, 200/s out")
    assert after(60, reading(0, 200, 100_000)).health is Health.OK


@example(100, 7.0, 3.75)
@given(st.integers(100, 5_000), st.floats(0.5, 5) | st.floats(5, 65), st.floats(1, 5))
def test_infrequent_commits_raise_no_alarm(rate: int, every_s: float, step: float) -> None:
    """A consumer that keeps up has a sawtooth lag: zero after each commit, growing in between."""

    def course(at_s: float) -> GroupDescription:
        return group(partitions=[partition(0, int(at_s // every_s * every_s * rate), int(at_s * rate))])

    watch = GroupsWatch()
    verdicts: list[Health | None] = []
    for place in range(140):
        (row,) = watch.add(snapshot(place * step, course(place * step)))
        assert row.health in (None, Health.OK), row.health_reason
        verdicts.append(row.health)
    changes = [one for one, before in zip(verdicts, [Health.OK, *verdicts], strict=False) if one is not before]
    assert changes in ([], [None], [None, Health.OK]), verdicts


@given(
    st.integers(0, 500),
    st.integers(0, 500),
    st.sampled_from([0, 1, 500, 100_000]),
    st.sampled_from([1.0, 2.0, 5.0, 11.0]),
)
@example(181, 162, 0, 1.0)
def test_no_verdict_flips_while_the_rates_stay_the_same(rate_in: int, rate_out: int, lag: int, step: float) -> None:
    """A word that has come does not go away and come back, whatever the constant rates are."""
    watch, course = GroupsWatch(), reading(rate_in, rate_out, lag)
    seen: list[Health | None] = []
    for place in range(round(200 / step)):
        (row,) = watch.add(snapshot(place * step, course(place * step)))
        if not seen or seen[-1] is not row.health:
            seen.append(row.health)
    assert len(seen) == len(set(seen)), seen


def test_a_lagging_group_recovers_only_when_its_lag_is_clearly_below_the_limit() -> None:
    """The lag passes 90 s of records after 100 s, and 72 s after 460 s."""
    course = reading(100, 105, 9_500)
    assert [after(at_s, course, 5).health for at_s in (50, 150, 450, 470)] == [*[Health.LAGGING] * 3, Health.OK]
    assert after(60, reading(100, 105, 9_000)).health is Health.OK


def test_a_group_with_a_constant_delay_recovers_from_a_burst() -> None:
    """It is 60 s behind; from 200 s on, twice as many records arrive."""

    def end(at_s: float) -> int:
        return 100_000 + int(100 * at_s + 100 * max(0.0, at_s - 200))

    def course(at_s: float) -> GroupDescription:
        return group(partitions=[partition(0, end(at_s - 60), end(at_s))])

    assert [after(at_s, course).health for at_s in (190, 240, 350)] == [Health.OK, Health.LAGGING, Health.OK]


# --- errors ---


def test_the_health_is_unknown_if_the_leader_of_an_owned_partition_fails() -> None:
    error = RowError("LEADER_NOT_AVAILABLE", "no leader")
    row = after(0, lambda _: group(partitions=[partition(3, 5, None, error=error)]))
    assert judged(row) == (Health.UNKNOWN, "orders 3: no leader")
    row = after(0, lambda _: group(partitions=[partition(3, 5, None, owner=None, error=error)]))
    assert row.health is Health.OK
