"""All groups: rows by id, what is known when, and what is forgotten."""

from __future__ import annotations

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription
from kgctl.model.watched import Verdict
from kgctl.watch.groups import GroupsWatch
from tests.kgctl.watch.looks import group, look, member, partition


def test_rows_stand_by_group_id_with_what_the_description_says() -> None:
    described = group(
        name="b",
        generation=7,
        assignment_strategy="range",
        members=[member("c-1", [0]), member("c-2", [1])],
        partitions=[partition(0, 4, 10), partition(1, 4, 6, "c-2")],
    )
    rows = GroupsWatch().add(look(0, described, group("Empty", (), name="a", assignment_strategy="")))
    assert [row.group for row in rows] == ["a", "b"]
    assert (rows[1].state, rows[1].generation, rows[1].protocol, rows[1].members, rows[1].lag) == (
        "Stable", 7, "range", 2, 8,
    )  # fmt: skip
    assert (rows[0].protocol, rows[0].members, rows[0].lag) == (None, 0, 0)


def test_the_epoch_is_the_generation_of_a_group_of_the_newer_protocol() -> None:
    (row,) = GroupsWatch().add(look(0, group(type="Consumer", group_epoch=4)))
    assert row.generation == 4


def test_lag_is_unknown_where_nothing_was_committed_and_of_share_groups() -> None:
    (row,) = GroupsWatch().add(look(0, group(partitions=[partition(0, None, 5)])))
    assert row.lag is None
    (row,) = GroupsWatch().add(look(0, group(type="Share")))
    assert row.lag is None


def test_a_group_that_fails_is_a_row_with_its_error_and_one_that_is_gone_is_none() -> None:
    failed = GroupDescription("a", error=RowError("COORDINATOR_NOT_AVAILABLE", "no coordinator yet"))
    gone = GroupDescription("b", error=RowError("NOT_FOUND", "does not exist"))
    (row,) = GroupsWatch().add(look(0, failed, gone))
    assert (row.group, row.verdict, row.verdict_reason, row.members) == ("a", Verdict.ERROR, "no coordinator yet", None)
    assert row.error is failed.error


def test_a_group_that_went_away_begins_anew_when_it_comes_back() -> None:
    watch = GroupsWatch()
    watch.add(look(0, group(partitions=[partition(0, 0, 0)])))
    assert watch.add(look(2)) == []
    (row,) = watch.add(look(4, group(partitions=[partition(0, 4, 4)])))
    assert row.rate_in is None


def test_a_group_whose_broker_does_not_answer_is_remembered_for_a_minute() -> None:
    for away_s, rate in ((59, 1.0), (61, None)):
        watch = GroupsWatch()
        watch.add(look(0, group(partitions=[partition(0, 0, 0)])))
        watch.add(look(away_s, errors=(RowError("UNREACHABLE", "node 2"),)))
        (row,) = watch.add(look(100, group(partitions=[partition(0, 100, 100)])))
        assert row.rate_in == rate


def test_the_time_since_the_last_rebalance_is_told_by_our_broker() -> None:
    watch = GroupsWatch()
    for state, since_s in (("Stable", 60.0), ("Empty", 60.0), ("PreparingRebalance", 0.0)):
        (row,) = watch.add(look(100, group(state, state_since_ms=40_000)))
        assert row.rebalanced_s == since_s
        watch = GroupsWatch()
    (row,) = watch.add(look(100, group(state_since_ms=100_500)))
    assert row.rebalanced_s == 0.0


def test_a_broker_whose_clock_is_another_one_tells_the_same_times() -> None:
    lag = [partition(0, 5, 1_005, None)]
    for ahead_s in (-3_600, 3_600):
        watch, born_ms = GroupsWatch(), (2_000 + ahead_s) * 1000
        watch.add(look(10_000, group(state_since_ms=born_ms)))
        emptied_ms = (10_001 + ahead_s) * 1000
        times = []
        for at_s in (10_002, 10_010, 10_020):
            (row,) = watch.add(look(at_s, group("Empty", (), lag, state_since_ms=emptied_ms)))
            times.append(row.rebalanced_s or 0.0)
            assert row.verdict is Verdict.LAGGING, row.verdict_reason
        assert times[0] < 8, times
        assert [time - times[0] for time in times] == [0, 8, 18]


def test_elsewhere_it_is_counted_from_the_change_that_was_seen() -> None:
    two = [member("c-1"), member("c-2")]
    changes = {
        "other members": (group(), group(members=[member("c-2")])),
        "more members": (group(), group(members=two)),
        "another epoch": (group(type="Consumer", group_epoch=1), group(type="Consumer", group_epoch=2)),
        "a rebalance": (group(), group("PreparingRebalance")),
    }
    for name, (before, after) in changes.items():
        watch = GroupsWatch()
        assert [row.rebalanced_s for row in watch.add(look(0, before))] == [None], name
        assert [row.rebalanced_s for row in watch.add(look(2, before))] == [None], name
        assert [row.rebalanced_s for row in watch.add(look(4, after))] == [0.0], name
        settled = group(members=after.members, type=after.type, group_epoch=after.group_epoch)
        watch.add(look(6, settled))
        (row,) = watch.add(look(10, settled))
        assert row.rebalanced_s == (4.0 if name == "a rebalance" else 6.0), name


def test_a_member_that_is_replaced_in_its_generation_is_no_rebalance() -> None:
    watch = GroupsWatch()
    watch.add(look(0, group(generation=3)))
    (row,) = watch.add(look(2, group(generation=3, members=[member("c-9")])))
    assert row.rebalanced_s is None


def test_what_a_member_owns_is_read_whatever_it_subscribed_to() -> None:
    watch = GroupsWatch()
    for at_s in (0, 10):
        rows = [partition(0, at_s, 2 * at_s, topic="other")]
        (row,) = watch.add(look(at_s, group(partitions=rows, subscribed=frozenset({"orders"}))))
    assert (row.rate_in, row.rate_out, row.verdict_reason) == (2.0, 1.0, "a lag of 10: 2.0/s in, 1.0/s out")


def test_what_is_left_of_topics_that_nobody_wants_is_lag_and_no_reason_for_alarm() -> None:
    watch = GroupsWatch()
    for at_s in range(0, 100, 2):
        old = partition(0, 0, 50 + at_s, None, "former")
        (row,) = watch.add(look(at_s, group(partitions=[old, partition(0, 7, 7)], subscribed=frozenset({"orders"}))))
    assert (row.lag, row.rate_in, row.verdict) == (148, 0.0, Verdict.OK)
    assert row.verdict_reason == "no lag; 148 records are in topics that no member wants"
