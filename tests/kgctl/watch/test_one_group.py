"""One group on display: partitions with series, members and where they stand, and looks that fail."""

from __future__ import annotations

import pytest

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription, MemberRow, by_topic
from kgctl.model.watched import Verdict
from kgctl.watch.partitions import LOOKS, GroupWatch
from kgctl.watch.phases import tally
from tests.kgctl.watch.looks import group, look_at, member, partition

FAILED = GroupDescription("g", error=RowError("UNREACHABLE", "no answer"))
GONE = GroupDescription("g", error=RowError("NOT_FOUND", "does not exist"))


def test_partitions_stand_in_order_whoever_owns_them() -> None:
    rows = [partition(10, 1, 2), partition(2, 1, 2, "c-2"), partition(0, 1, 2, None, "a")]
    view = GroupWatch().add(look_at(0, group(partitions=rows)))
    assert [(row.topic, row.partition, row.consumer_id) for row in view.partitions] == [
        ("a", 0, None),
        ("orders", 2, "c-2"),
        ("orders", 10, "c-1"),
    ]


def test_a_partition_has_its_rates_its_lags_and_the_time_that_is_left() -> None:
    watch = GroupWatch()
    first = watch.add(look_at(0, group(partitions=[partition(0, 0, 100)]))).partitions[0]
    assert (first.lags, first.rate_in, first.rate_out, first.eta_s) == ((100,), None, None, None)
    watch.add(look_at(5, group(partitions=[partition(0, 40, 110), partition(1, 0, 0)])))
    row = watch.add(look_at(10, group(partitions=[partition(0, 80, 120), partition(1, 0, 0)]))).partitions[0]
    assert (row.committed, row.log_end, row.lag, row.lags) == (80, 120, 40, (100, 70, 40))
    assert (row.rate_in, row.rate_out) == (2.0, 8.0)
    assert row.eta_s == pytest.approx(40 / 6)


def test_a_series_has_the_newest_lags_and_ends_with_its_partition() -> None:
    watch = GroupWatch()
    for at_s in range(LOOKS + 5):
        row = watch.add(look_at(at_s, group(partitions=[partition(0, 0, at_s)]))).partitions[0]
    assert row.lags == tuple(range(5, LOOKS + 5))
    assert watch.add(look_at(100, group())).partitions == ()
    assert watch.add(look_at(101, group(partitions=[partition(0, 0, 9)]))).partitions[0].lags == (9,)


def test_a_look_that_is_not_later_adds_nothing_to_a_series() -> None:
    watch = GroupWatch()
    watch.add(look_at(0, group(partitions=[partition(0, 0, 0)])))
    before = watch.add(look_at(10, group(partitions=[partition(0, 10, 20)])))
    for at_s in (10, 5):
        assert watch.add(look_at(at_s, group(partitions=[partition(0, 99, 99)]))).partitions == before.partitions


def test_a_look_that_failed_leaves_what_was_known_beside_its_error() -> None:
    watch = GroupWatch()
    assert watch.add(look_at(0, FAILED)).group is None
    before = watch.add(look_at(2, group(partitions=[partition(0, 0, 9)])))
    failed = watch.add(look_at(4, FAILED))
    assert (failed.summary.verdict, failed.summary.verdict_reason) == (Verdict.ERROR, "no answer")
    assert (failed.partitions, failed.members, failed.group) == (before.partitions, before.members, before.group)
    gone = watch.add(look_at(6, GONE))
    assert (gone.partitions, gone.members, gone.group) == ((), (), None)
    assert watch.add(look_at(8, group(partitions=[partition(0, 0, 9)]))).partitions[0].lags == (9,)


def test_the_time_in_a_state_is_told_or_at_least_what_was_seen() -> None:
    view = GroupWatch().add(look_at(60, group(state_since_ms=15_000)))
    assert (view.state_s, view.is_state_s_least) == (45.0, False)
    watch = GroupWatch()
    watch.add(look_at(0, group()))
    view = watch.add(look_at(4, group()))
    assert (view.state_s, view.is_state_s_least) == (4.0, True)
    watch.add(look_at(6, group("PreparingRebalance")))
    view = watch.add(look_at(9, group("PreparingRebalance")))
    assert (view.state_s, view.is_state_s_least) == (3.0, False)


def test_other_members_in_the_same_state_are_a_state_that_was_left_in_between() -> None:
    watch = GroupWatch()
    watch.add(look_at(0, group()))
    watch.add(look_at(6, group(members=[member("c-2")])))
    view = watch.add(look_at(8, group(members=[member("c-2")])))
    assert (view.state_s, view.is_state_s_least) == (2.0, False)
    # Who comes while members are awaited ends no wait.
    for at_s, names in ((10, ["c-2"]), (12, ["c-2", "c-3"])):
        view = watch.add(look_at(at_s, group("PreparingRebalance", members=[member(name) for name in names])))
    assert (view.state_s, view.is_state_s_least) == (2.0, False)


@pytest.mark.parametrize(
    ("phase", "word"),
    [
        ("joined", "joined"),
        ("join awaited", "missing"),
        ("sync awaited", "awaiting sync"),
        ("synced", "synced"),
        ("stable", "stable"),
        ("asleep", "asleep"),
    ],
)
def test_our_broker_tells_where_a_member_stands(phase: str, word: str) -> None:
    row = member("c-1", phase=phase, heartbeat_age_ms=9_000, session_timeout_ms=10_000)
    (standing,) = GroupWatch().add(look_at(0, group("PreparingRebalance", [row]))).members
    assert (standing.word, standing.silent_share, standing.is_dead) == (word, 0.9, phase != "joined")


def epochs(current: int, target: int) -> MemberRow:
    return member("c-1", [0], current_epoch=current, target_epoch=target, target_assignment=by_topic([("orders", 0)]))


def test_elsewhere_it_is_said_only_where_there_is_no_doubt() -> None:
    cases = [
        (group("Stable"), "stable"),
        (group("PreparingRebalance"), None),
        (group("Stable", type="Share"), None),
        (group("Stable", [epochs(4, 4)], type="Consumer"), "stable"),
        (group("Reconciling", [epochs(3, 4)], type="Consumer"), "reconciling"),
    ]
    for described, word in cases:
        (standing,) = GroupWatch().add(look_at(0, described)).members
        assert (standing.word, standing.silent_share, standing.is_dead) == (word, None, False)


def test_members_are_counted_by_where_they_stand() -> None:
    phases = ["synced", "sync awaited", "synced", None]
    members = [member(f"c-{place}", phase=phase) for place, phase in enumerate(phases)]
    view = GroupWatch().add(look_at(0, group("CompletingRebalance", members)))
    assert tally(view.members) == (("awaiting sync", 1), ("synced", 2))
