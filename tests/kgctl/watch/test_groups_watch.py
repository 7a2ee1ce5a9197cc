"""All groups: their rows, when values become known, and when groups are forgotten."""

from __future__ import annotations

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription
from kgctl.model.health import Health
from kgctl.watch.groups import GroupsWatch
from tests.kgctl.watch.snapshots import group, member, partition, snapshot


def test_rows_are_sorted_by_group_id_and_have_the_values_of_the_description() -> None:
    described = group(
        name="b",
        generation=7,
        assignment_strategy="range",
        members=[member("c-1", [0]), member("c-2", [1])],
        partitions=[partition(0, 4, 10), partition(1, 4, 6, "c-2")],
    )
    rows = GroupsWatch().add(snapshot(0, described, group("Empty", (), name="a", assignment_strategy="")))
    assert [row.group for row in rows] == ["a", "b"]
    assert (rows[1].state, rows[1].generation, rows[1].protocol, rows[1].members, rows[1].lag) == (
        "Stable", 7, "range", 2, 8,
    )  # fmt: skip
    assert (rows[0].protocol, rows[0].members, rows[0].lag) == (None, 0, None)


def test_the_generation_of_a_kip_848_group_is_its_epoch() -> None:
    (row,) = GroupsWatch().add(snapshot(0, group(type="Consumer", group_epoch=4)))
    assert row.generation == 4


def test_lag_is_unknown_without_commits_and_for_share_groups() -> None:
    (row,) = GroupsWatch().add(snapshot(0, group(partitions=[partition(0, None, 5)])))
    assert row.lag is None
    (row,) = GroupsWatch().add(snapshot(0, group(type="Share")))
    assert row.lag is None


def test_a_failed_group_is_a_row_with_its_error_and_a_deleted_group_has_no_row() -> None:
    failed = GroupDescription("a", error=RowError("COORDINATOR_NOT_AVAILABLE", "no coordinator yet"))
    gone = GroupDescription("b", error=RowError("NOT_FOUND", "does not exist"))
    (row,) = GroupsWatch().add(snapshot(0, failed, gone))
    assert (row.group, row.health, row.health_reason, row.members) == ("a", Health.UNKNOWN, "no coordinator yet", None)
    assert row.error is failed.error


def test_a_group_that_was_absent_starts_without_rates() -> None:
    watch = GroupsWatch()
    watch.add(snapshot(0, group(partitions=[partition(0, 0, 0)])))
    assert watch.add(snapshot(2)) == []
    (row,) = watch.add(snapshot(4, group(partitions=[partition(0, 4, 4)])))
    assert row.rate_in is None


def test_a_group_whose_broker_does_not_answer_is_remembered_for_a_minute() -> None:
    for away_s, rate in ((59, 1.0), (61, None)):
        watch = GroupsWatch()
        watch.add(snapshot(0, group(partitions=[partition(0, 0, 0)])))
        watch.add(snapshot(away_s, errors=(RowError("UNREACHABLE", "node 2"),)))
        (row,) = watch.add(snapshot(100, group(partitions=[partition(0, 100, 100)])))
        assert row.rate_in == rate


def test_our_broker_reports_the_time_since_the_last_rebalance() -> None:
    watch = GroupsWatch()
    for state, since_s in (("Stable", 60.0), ("Empty", 60.0), ("PreparingRebalance", 0.0)):
        (row,) = watch.add(snapshot(100, group(state, state_since_ms=40_000)))
        assert row.rebalanced_s == since_s
        watch = GroupsWatch()
    (row,) = watch.add(snapshot(100, group(state_since_ms=100_500)))
    assert row.rebalanced_s == 0.0


def test_clock_skew_does_not_change_durations() -> None:
    lag = [partition(0, 5, 1_005, None)]
    for ahead_s in (-3_600, 3_600):
        watch, born_ms = GroupsWatch(), (2_000 + ahead_s) * 1000
        watch.add(snapshot(10_000, group(state_since_ms=born_ms)))
        emptied_ms = (10_001 + ahead_s) * 1000
        times = []
        for at_s in (10_002, 10_010, 10_020):
            (row,) = watch.add(snapshot(at_s, group("Empty", (), lag, state_since_ms=emptied_ms)))
            times.append(row.rebalanced_s or 0.0)
            assert row.health is None, row.health_reason
        assert times[0] < 8, times
        assert [time - times[0] for time in times] == [0, 8, 18]


def test_elsewhere_the_time_counts_from_the_observed_change() -> None:
    two = [member("c-1"), member("c-2")]
    changes = {
        "other members": (group(), group(members=[member("c-2")])),
        "more members": (group(), group(members=two)),
        "another epoch": (group(type="Consumer", group_epoch=1), group(type="Consumer", group_epoch=2)),
        "a rebalance": (group(), group("PreparingRebalance")),
    }
    for name, (before, after) in changes.items():
        watch = GroupsWatch()
        assert [row.rebalanced_s for row in watch.add(snapshot(0, before))] == [None], name
        assert [row.rebalanced_s for row in watch.add(snapshot(2, before))] == [None], name
        assert [row.rebalanced_s for row in watch.add(snapshot(4, after))] == [0.0], name
        settled = group(members=after.members, type=after.type, group_epoch=after.group_epoch)
        watch.add(snapshot(6, settled))
        (row,) = watch.add(snapshot(10, settled))
        assert row.rebalanced_s == (4.0 if name == "a rebalance" else 6.0), name


def test_replacing_a_member_within_a_generation_is_not_a_rebalance() -> None:
    watch = GroupsWatch()
    watch.add(snapshot(0, group(generation=3)))
    (row,) = watch.add(snapshot(2, group(generation=3, members=[member("c-9")])))
    assert row.rebalanced_s is None


def test_an_owned_partition_counts_whatever_the_subscription() -> None:
    watch = GroupsWatch()
    for at_s in (0, 40):
        rows = [partition(0, at_s, 2 * at_s, topic="other")]
        (row,) = watch.add(snapshot(at_s, group(partitions=rows, subscribed=frozenset({"orders"}))))
    assert (row.rate_in, row.rate_out, row.health_reason) == (2.0, 1.0, "lag 40 grows by 1.0/s: 2.0/s in, 1.0/s out")


def test_lag_in_unsubscribed_topics_counts_and_raises_no_alarm() -> None:
    watch = GroupsWatch()
    for at_s in range(0, 100, 2):
        old = partition(0, 0, 50 + at_s, None, "former")
        (row,) = watch.add(
            snapshot(at_s, group(partitions=[old, partition(0, 7, 7)], subscribed=frozenset({"orders"})))
        )
    assert (row.lag, row.rate_in, row.health) == (148, 0.0, Health.OK)
    assert row.health_reason == "no lag; 148 records in topics that no member subscribes to"
