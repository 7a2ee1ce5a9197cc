"""All groups of a cluster over snapshots: series, totals, and what happened."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

from broker.light_dataclasses import replace
from kgctl.model.cluster_view import EventKind
from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription
from kgctl.model.health import Health
from kgctl.model.history import DELETED, STABLE, STARTED, GroupEventRow
from kgctl.watch.cluster import ClusterView, ClusterWatch
from kgctl.watch.series import BRIDGED, BUCKET_S, BUCKETS, Series
from tests.kgctl.watch.snapshots import event, group, member, partition, snapshot

Events = Iterable[GroupEventRow] | None


def happened(view: ClusterView) -> list[tuple[int, str | None, str]]:
    return [(one.wall_ms, one.group, one.text) for one in view.events]


def lagging(name: str, at_s: float, per_s: float = 10.0) -> GroupDescription:
    return group(name=name, partitions=[partition(0, int(at_s), int(at_s + per_s * at_s))])


def at_lag(lag: int) -> GroupDescription:
    return group(partitions=[partition(0, 100, 100 + lag)])


def test_a_series_has_the_newest_value_of_each_bucket_and_gaps_after_long_pauses() -> None:
    series = Series()
    assert series.lags() == (None,) * BUCKETS
    for at_s, lag in ((0.0, 1), (4.0, 2), (BUCKET_S, 3), (3 * BUCKET_S, 4)):
        series.add(at_s, lag, None, 0.5)
    assert series.lags()[-4:] == (2, 3, 3, 4)
    assert series.rates_in() == (None,) * BUCKETS
    assert series.rates_out()[-4:] == (0.5,) * 4
    assert series.lags(5 * BUCKET_S)[-4:] == (3, 4, None, None)
    at_s = (3 + BRIDGED + 1) * BUCKET_S
    series.add(at_s, 9, None, None)
    assert series.lags()[-9:] == (3, 4, *(None,) * BRIDGED, 9)
    series.add(at_s + BUCKETS * BUCKET_S, 10, None, None)
    assert series.lags() == (*(None,) * (BUCKETS - 1), 10)


def test_the_view_has_series_and_totals_of_the_cluster() -> None:
    watch = ClusterWatch()
    for at_s in range(0, 120, 5):
        view = watch.add(snapshot(at_s, lagging("a", at_s), lagging("b", at_s, 20.0)))
    assert (view.row("a"), view.row("b"), view.row("c")) == (*view.rows, None)
    assert view.totals.lag == 115 * 30
    assert view.totals.lag_per_s == 30.0
    assert view.lags("b")[-2:] == (105 * 20, 115 * 20)
    assert view.lags()[-1] == view.totals.lag
    assert view.rates_in("a")[-1] == 11.0
    assert view.lags("c") == (None,) * BUCKETS
    assert watch.add(snapshot(125, lagging("a", 125))).lags("b") == (None,) * BUCKETS


def test_a_verdict_that_changes_for_a_moment_is_no_event() -> None:
    def silent(age_ms: int) -> GroupDescription:
        return group(members=[member("c-1", session_timeout_ms=45_000, heartbeat_age_ms=age_ms)])

    watch = ClusterWatch()
    for at_s in range(0, 60, 2):
        view = watch.add(snapshot(at_s, silent(40_000 if at_s % 8 == 4 else 500)))
    assert happened(view) == []
    for at_s in range(60, 80, 2):
        view = watch.add(snapshot(at_s, silent(40_000)))
    (found,) = view.events
    assert (found.wall_ms, found.kind, found.group, found.health) == (60_000, EventKind.VERDICT, "g", Health.SILENT)


def test_the_first_verdict_is_an_event_if_it_is_a_fault_that_the_start_did_not_show() -> None:
    watch = ClusterWatch()
    silent = group(name="silent", members=[member("c-1", session_timeout_ms=45_000, heartbeat_age_ms=40_000)])
    for at_s in range(0, 150, 5):
        new = [replace(silent, group="new")] if at_s else []
        view = watch.add(snapshot(at_s, silent, lagging("slow", at_s + 1), *new))
    found = [(one.group, one.health, one.was) for one in view.events if one.kind is EventKind.VERDICT]
    assert found == [("new", Health.SILENT, None), (None, None, None)]
    assert happened(view)[-1] == (30_000, None, "2 groups need attention")


def test_groups_that_get_the_same_verdict_at_once_are_one_event() -> None:
    def at(at_s: float) -> list[GroupDescription]:
        stopped = [group("Empty", (), [partition(0, 5, 9, None)], name=f"g-{number}") for number in range(5)]
        if at_s < 20:
            stopped = [group(partitions=[partition(0, 9, 9)], name=one.group) for one in stopped]
        return stopped

    watch = ClusterWatch()
    for at_s in range(0, 130, 5):
        view = watch.add(snapshot(at_s, *at(at_s), events=()))
    (found,) = view.events
    assert (found.group, found.health, found.text) == (None, Health.STOPPED, "g-0, g-1, g-2 and 2 more")
    assert found.groups == tuple(f"g-{number}" for number in range(5))
    assert {(one.kind, one.was, one.health) for one in found.parts} == {
        (EventKind.VERDICT, Health.OK, Health.STOPPED),
    }


def test_a_record_arrives_once_however_many_groups_read_it() -> None:
    watch = ClusterWatch()
    for at_s in (0, 10, 20):
        one, two = partition(0, 0, 100 * at_s), partition(1, 0, 10 * at_s)
        view = watch.add(snapshot(at_s, *(group(name=name, partitions=[one, two]) for name in "abc")))
    assert (view.totals.rate_in, view.totals.rate_out) == (110.0, 0.0)


def test_a_rebalance_too_short_to_measure_says_so() -> None:
    stable = event(STABLE, 1_500, 2, prepare_ms=3, complete_ms=1, joined=("app",))
    view = ClusterWatch().add(snapshot(2, group(), events=(stable,)))
    assert happened(view) == [(1_500, "g", "rebalanced in < 0.1 s: app joined")]


def test_groups_that_come_and_go_are_events() -> None:
    watch = ClusterWatch()
    assert happened(watch.add(snapshot(0, group(name="a")))) == []
    watch.add(snapshot(2, group(name="a"), group(name="b")))
    assert happened(watch.add(snapshot(4, group(name="b")))) == [(2_000, "b", "created"), (4_000, "a", "deleted")]


def test_groups_of_a_broker_that_does_not_answer_are_not_deleted() -> None:
    watch = ClusterWatch()
    watch.add(snapshot(0, group(name="a"), group(name="b")))
    watch.add(snapshot(2, group(name="b"), errors=(RowError("UNREACHABLE", "broker 2"),)))
    assert happened(watch.add(snapshot(4, group(name="a"), group(name="b")))) == []


def test_rebalances_are_observed_where_there_is_no_history() -> None:
    watch = ClusterWatch()
    one = group(generation=1, members=[member("c-1", [0, 1])])
    two = group(generation=2, members=[member("c-1", [0]), member("c-2", [1])])
    watch.add(snapshot(0, one))
    watch.add(snapshot(2, group("PreparingRebalance", generation=1, members=[member("c-1"), member("c-2")])))
    assert happened(watch.add(snapshot(4, two))) == [(4_000, "g", "rebalanced in 2.0 s: c-2 joined, 1 partition moved")]
    assert happened(watch.add(snapshot(6, two)))[1:] == []
    last = watch.add(snapshot(8, group("Empty", (), generation=3)))
    assert happened(last)[1:] == [(8_000, "g", "empty: c-1, c-2 left")]


def test_events_come_from_the_history_where_there_is_one() -> None:
    ids = ("app-1-00000000-0000-0000-0000-000000000000",)
    rows = (
        event(STARTED, 500, 1),
        event(STABLE, 1_500, 2, prepare_ms=900, complete_ms=100, joined=ids, partitions_moved=7),
        event(STABLE, 2_500, 3, left=ids, left_causes=("session timed out",), cause="session timed out"),
    )
    watch = ClusterWatch()
    watch.add(snapshot(0, group(generation=1), events=()))
    view = watch.add(snapshot(2, group(generation=3), events=rows))
    assert happened(view) == [
        (1_500, "g", "rebalanced in 1.0 s: app-1 joined, 7 partitions moved"),
        (2_500, "g", "rebalanced: app-1 lost (session timed out)"),
    ]
    gone = watch.add(snapshot(4, events=(event(DELETED, 3_000, 3),)))
    assert [one for one in happened(gone) if one[2] == "deleted"] == [(4_000, "g", "deleted")]


def test_a_restart_of_the_broker_is_one_event() -> None:
    def restarted(started_ms: int) -> list[GroupDescription]:
        return [group(name=name, coordinator_id=1, broker_started_ms=started_ms) for name in "abc"]

    old = "app-00000000-0000-0000-0000-000000000001"
    new = "app-00000000-0000-0000-0000-000000000002"
    back = event(STABLE, 9_000, 2, joined=(new,), left=(old,), left_causes=("session timed out",), prepare_ms=10)
    watch = ClusterWatch()
    watch.add(snapshot(0, *restarted(1), events=()))
    watch.add(snapshot(8, *restarted(6_000), events=()))
    view = watch.add(snapshot(10, *restarted(6_000), events=(back,)))
    assert happened(view) == [(6_000, None, "broker 1 restarted")]


def test_a_watch_that_was_pickled_continues_as_before() -> None:
    watch = ClusterWatch()
    for at_s in range(0, 40, 4):
        watch.add(snapshot(at_s, lagging("a", at_s), at_lag(at_s)))
    other = pickle.loads(pickle.dumps(watch))
    for at_s in range(40, 80, 4):
        found = snapshot(at_s, lagging("a", at_s), at_lag(at_s))
        view, again = watch.add(found), other.add(found)
        assert (view.rows, view.totals, view.events) == (again.rows, again.totals, again.events)
        assert view.lags("a") == again.lags("a")
