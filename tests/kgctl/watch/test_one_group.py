"""One group: partitions with series of lag, phases of members, and failed snapshots."""

from __future__ import annotations

import pytest

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription, MemberRow, by_topic
from kgctl.model.health import Health
from kgctl.watch.group import LAGS, GroupWatch
from tests.kgctl.watch.snapshots import group, group_snapshot, member, partition

FAILED = GroupDescription("g", error=RowError("UNREACHABLE", "no answer"))
GONE = GroupDescription("g", error=RowError("NOT_FOUND", "does not exist"))


def test_partitions_are_sorted_whoever_owns_them() -> None:
    rows = [partition(10, 1, 2), partition(2, 1, 2, "c-2"), partition(0, 1, 2, None, "a")]
    view = GroupWatch().add(group_snapshot(0, group(partitions=rows)))
    assert [(row.topic, row.partition, row.consumer_id) for row in view.partitions] == [
        ("a", 0, None),
        ("orders", 2, "c-2"),
        ("orders", 10, "c-1"),
    ]


def test_a_partition_has_rates_lags_and_an_eta() -> None:
    watch = GroupWatch()
    first = watch.add(group_snapshot(0, group(partitions=[partition(0, 0, 100)]))).partitions[0]
    assert (first.lags, first.rate_in, first.rate_out, first.eta_s) == ((100,), None, None, None)
    watch.add(group_snapshot(5, group(partitions=[partition(0, 40, 110), partition(1, 0, 0)])))
    row = watch.add(group_snapshot(10, group(partitions=[partition(0, 80, 120), partition(1, 0, 0)]))).partitions[0]
    assert (row.committed, row.log_end, row.lag, row.lags) == (80, 120, 40, (100, 70, 40))
    assert (row.rate_in, row.rate_out) == (2.0, 8.0)
    assert row.eta_s == pytest.approx(40 / 6)


def test_a_series_keeps_the_newest_lags_and_ends_with_its_partition() -> None:
    watch = GroupWatch()
    for at_s in range(LAGS + 5):
        row = watch.add(group_snapshot(at_s, group(partitions=[partition(0, 0, at_s)]))).partitions[0]
    assert row.lags == tuple(range(5, LAGS + 5))
    assert watch.add(group_snapshot(100, group())).partitions == ()
    assert watch.add(group_snapshot(101, group(partitions=[partition(0, 0, 9)]))).partitions[0].lags == (9,)


def test_a_snapshot_that_is_not_newer_adds_nothing_to_a_series() -> None:
    watch = GroupWatch()
    watch.add(group_snapshot(0, group(partitions=[partition(0, 0, 0)])))
    before = watch.add(group_snapshot(10, group(partitions=[partition(0, 10, 20)])))
    for at_s in (10, 5):
        assert watch.add(group_snapshot(at_s, group(partitions=[partition(0, 99, 99)]))).partitions == before.partitions


def test_a_failed_snapshot_keeps_the_last_good_view_and_adds_the_error() -> None:
    watch = GroupWatch()
    assert watch.add(group_snapshot(0, FAILED)).group is None
    before = watch.add(group_snapshot(2, group(partitions=[partition(0, 0, 9)])))
    failed = watch.add(group_snapshot(4, FAILED))
    assert (failed.summary.health, failed.summary.health_reason) == (Health.UNKNOWN, "no answer")
    assert (failed.partitions, failed.members, failed.group) == (before.partitions, before.members, before.group)
    gone = watch.add(group_snapshot(6, GONE))
    assert (gone.partitions, gone.members, gone.group) == ((), (), None)
    assert watch.add(group_snapshot(8, group(partitions=[partition(0, 0, 9)]))).partitions[0].lags == (9,)


def test_the_time_in_a_state_is_reported_or_a_lower_bound() -> None:
    view = GroupWatch().add(group_snapshot(60, group(state_since_ms=15_000)))
    assert (view.state_s, view.is_state_s_least) == (45.0, False)
    watch = GroupWatch()
    watch.add(group_snapshot(0, group()))
    view = watch.add(group_snapshot(4, group()))
    assert (view.state_s, view.is_state_s_least) == (4.0, True)
    watch.add(group_snapshot(6, group("PreparingRebalance")))
    view = watch.add(group_snapshot(9, group("PreparingRebalance")))
    assert (view.state_s, view.is_state_s_least) == (3.0, False)


def test_other_members_in_the_same_state_mean_that_the_state_was_left_in_between() -> None:
    watch = GroupWatch()
    watch.add(group_snapshot(0, group()))
    watch.add(group_snapshot(6, group(members=[member("c-2")])))
    view = watch.add(group_snapshot(8, group(members=[member("c-2")])))
    assert (view.state_s, view.is_state_s_least) == (2.0, False)
    # A member that joins during PreparingRebalance does not restart the state.
    for at_s, names in ((10, ["c-2"]), (12, ["c-2", "c-3"])):
        view = watch.add(group_snapshot(at_s, group("PreparingRebalance", members=[member(name) for name in names])))
    assert (view.state_s, view.is_state_s_least) == (2.0, False)


@pytest.mark.parametrize(
    ("reported", "shown"),
    [
        ("joined", "joined"),
        ("join awaited", "not rejoined yet"),
        ("sync awaited", "awaiting sync"),
        ("synced", "synced"),
        ("stable", "stable"),
        ("asleep", "asleep"),
    ],
)
def test_our_broker_reports_the_phase_of_a_member(reported: str, shown: str) -> None:
    row = member("c-1", phase=reported, heartbeat_age_ms=9_000, session_timeout_ms=10_000)
    (found,) = GroupWatch().add(group_snapshot(0, group("PreparingRebalance", [row]))).members
    assert (found.phase, found.is_silent) == (shown, reported != "joined")


def epochs(current: int, target: int) -> MemberRow:
    return member("c-1", [0], current_epoch=current, target_epoch=target, target_assignment=by_topic([("orders", 0)]))


def test_elsewhere_the_phase_is_shown_only_if_it_is_certain() -> None:
    cases = [
        (group("Stable"), "stable"),
        (group("PreparingRebalance"), None),
        (group("Stable", type="Share"), None),
        (group("Stable", [epochs(4, 4)], type="Consumer"), "stable"),
        (group("Reconciling", [epochs(3, 4)], type="Consumer"), "reconciling"),
    ]
    for described, phase in cases:
        (found,) = GroupWatch().add(group_snapshot(0, described)).members
        assert (found.phase, found.is_silent) == (phase, False)
