"""The timeline from the history of a group: one row per rebalance, however it ends."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from broker.light_dataclasses import replace
from kgctl.model.groups import TopicPartitions
from kgctl.model.history import GroupEventRow
from kgctl.model.watched import Rebalance
from kgctl.watch.rebalances import REBALANCES
from kgctl.watch.timeline import Timeline
from tests.kgctl.watch.snapshots import event, group, group_snapshot, member

STARTED, STABLE, EMPTY, REPLACED, DELETED = "rebalance_started", "stable", "empty", "member_replaced", "deleted"
PREPARING = "PreparingRebalance"


def from_history(*events: GroupEventRow, state: str = "Stable", at_s: float = 100) -> tuple[Rebalance, ...]:
    return Timeline().add(group_snapshot(at_s, group(state), events), whole_history=True)


def kinds(rows: Iterable[Rebalance]) -> list[tuple[int, int | None, int | None, str]]:
    return [(row.started_ms, row.ended_ms, row.generation, row.outcome) for row in rows]


def test_a_rebalance_is_one_row_with_all_facts_of_its_end_event() -> None:
    (row,) = from_history(
        event(STARTED, 1_000, 4, cause="session timed out"),
        event(
            STABLE,
            4_000,
            5,
            cause="session timed out",
            reason="why",
            prepare_ms=2_500,
            complete_ms=500,
            members=2,
            joined=("c-4",),
            left=("c-1", "c-2"),
            left_causes=("session timed out", "member left"),
            left_count=7,
            partitions_moved=3,
            assignment={"c-4": (TopicPartitions("orders", (0,)),)},
        ),
    )
    assert row == Rebalance(
        started_ms=1_000,
        ended_ms=4_000,
        generation=5,
        cause="session timed out",
        reason="why",
        prepare_ms=2_500,
        complete_ms=500,
        members=2,
        joined=("c-4",),
        joined_count=1,
        left=("c-1", "c-2"),
        left_count=7,
        left_causes=("session timed out", "member left"),
        partitions_moved=3,
        outcome="stable",
        assignment={"c-4": (TopicPartitions("orders", (0,)),)},
    )


def test_a_rebalance_under_way_ends_with_an_event_of_a_later_snapshot() -> None:
    timeline = Timeline()
    begun = [event(STARTED, 1_000, 4, cause="member joined", joined=("c-2",), members=2)]
    (row,) = timeline.add(group_snapshot(2, group(PREPARING), begun), whole_history=True)
    assert (row.ended_ms, row.generation, row.outcome, row.cause, row.joined) == (
        None,
        None,
        "under way",
        "member joined",
        ("c-2",),
    )
    assert timeline.add(group_snapshot(4, group(PREPARING), ())) == (row,)
    rows = timeline.add(group_snapshot(6, group("CompletingRebalance"), [event(STABLE, 5_000, 5)]))
    assert kinds(rows) == [(1_000, 5_000, 5, "stable")]


def test_a_superseded_rebalance_led_to_a_generation_that_never_became_stable() -> None:
    rows = from_history(
        event(STARTED, 1_000, 4, cause="member joined"),
        event(STARTED, 3_000, 5, cause="sync timed out"),
        event(STABLE, 6_000, 6, cause="sync timed out"),
    )
    assert kinds(rows) == [(1_000, 3_000, 5, "superseded"), (3_000, 6_000, 6, "stable")]
    assert [row.cause for row in rows] == ["member joined", "sync timed out"]


def test_a_superseded_epoch_is_that_of_its_start() -> None:
    events = event(STARTED, 1_000, 4), event(STARTED, 3_000, 5), event(STABLE, 6_000, 5)
    rows = from_history(*(replace(one, group_type="consumer") for one in events))
    assert kinds(rows) == [(1_000, 3_000, 4, "superseded"), (3_000, 6_000, 5, "stable")]


def test_a_share_group_is_stable_while_it_rebalances() -> None:
    timeline = Timeline()
    share = replace(group("Stable"), type="Share")
    start = replace(event(STARTED, 1_000, 4), group_type="share")
    timeline.add(group_snapshot(2, share, [start]), whole_history=True)
    (row,) = timeline.add(group_snapshot(90, share, ()))
    assert row.is_under_way


def test_a_rebalance_interrupted_by_a_restart_has_no_duration() -> None:
    rows = from_history(event(STARTED, 1_000, 4), event(STARTED, 9_000, 4), event(EMPTY, 9_500, 6), state="Empty")
    assert kinds(rows) == [(1_000, 1_000, None, "interrupted"), (9_000, 9_500, 6, "empty")]
    assert rows[1].assignment == {}


def test_an_interrupted_rebalance_is_not_under_way() -> None:
    timeline = Timeline()
    begun = [event(STARTED, 1_000, 4)]
    assert kinds(timeline.add(group_snapshot(2, group(), begun), whole_history=True)) == [
        (1_000, None, None, "under way")
    ]
    assert kinds(timeline.add(group_snapshot(4, group(), ()))) == [(1_000, 1_000, None, "interrupted")]
    # The rebalance may have begun between the description and the events, which are less than a minute apart.
    assert kinds(from_history(*begun, at_s=61)) == [(1_000, None, None, "under way")]
    assert kinds(from_history(*begun, at_s=61.1)) == [(1_000, 1_000, None, "interrupted")]
    assert kinds(from_history(*begun, at_s=900, state=PREPARING)) == [(1_000, None, None, "under way")]


def test_a_rebalance_that_began_after_the_description_is_under_way_despite_clock_skew() -> None:
    for behind_s in (0, 3_600):
        timeline = Timeline()
        settled = group(state_since_ms=1_000)
        timeline.add(group_snapshot(10 + behind_s, settled, ()), whole_history=True)
        timeline.add(group_snapshot(12 + behind_s, settled, [event(STARTED, 12_000, 4)]))
        rows = timeline.add(group_snapshot(14 + behind_s, group(PREPARING), [event(STABLE, 13_000, 5)]))
        assert kinds(rows) == [(12_000, 13_000, 5, "stable")]


def test_a_rebalance_interrupted_by_a_restart_is_over_despite_clock_skew() -> None:
    for ahead_s in (0, 3_600):
        timeline = Timeline()
        begun_ms = 12_000 + ahead_s * 1000
        timeline.add(
            group_snapshot(13, group(PREPARING, state_since_ms=begun_ms), [event(STARTED, begun_ms, 4)]),
            whole_history=True,
        )
        rows = timeline.add(group_snapshot(15, group("Empty", (), state_since_ms=begun_ms + 900), ()))
        assert kinds(rows) == [(begun_ms, begun_ms, None, "interrupted")]


def test_the_start_of_a_rebalance_without_a_start_event_follows_from_its_durations() -> None:
    assert kinds(from_history(event(STABLE, 9_000, 5, prepare_ms=3_000, complete_ms=1_000))) == [
        (5_000, 9_000, 5, "stable")
    ]
    assert kinds(from_history(event(EMPTY, 9_000, 5, prepare_ms=3_000))) == [(6_000, 9_000, 5, "empty")]


def test_a_replaced_member_and_a_deleted_group_are_rows_without_a_duration() -> None:
    rows = from_history(
        event(STARTED, 1_000, 0),
        event(STABLE, 2_000, 1),
        event(REPLACED, 3_000, 1, cause="member joined", joined=("s-2",), left=("s-1",)),
        event(DELETED, 9_000, 1, cause="group deleted", members=0),
    )
    assert kinds(rows) == [
        (1_000, 2_000, 1, "stable"),
        (3_000, 3_000, 1, "member replaced"),
        (9_000, 9_000, 1, "deleted"),
    ]


def test_unknown_event_kinds_of_newer_brokers_are_skipped() -> None:
    assert from_history(event("paused", 1_000, 1)) == ()


def test_unreadable_events_are_counted_and_the_others_are_used() -> None:
    timeline = Timeline()
    lost = event("unreadable", 0, -1)
    events = [event(STARTED, 1_000, 0), lost, event(STABLE, 2_000, 1)]
    assert kinds(timeline.add(group_snapshot(2, group(), events), whole_history=True)) == [(1_000, 2_000, 1, "stable")]
    timeline.add(group_snapshot(4, group(), [lost]))
    assert timeline.unreadable == 2
    timeline.add(group_snapshot(6, group(), events), whole_history=True)
    assert timeline.unreadable == 1


def test_reading_the_whole_history_again_replaces_the_rows() -> None:
    timeline = Timeline()
    events = [event(STARTED, 1_000, 0), event(STABLE, 2_000, 1)]
    first = timeline.add(group_snapshot(2, group(), events), whole_history=True)
    assert timeline.add(group_snapshot(4, group(), events), whole_history=True) == first
    assert len(timeline.add(group_snapshot(6, group(), [event(REPLACED, 3_000, 1)]))) == 2


def test_a_snapshot_without_a_readable_history_leaves_the_rows_unchanged() -> None:
    timeline = Timeline()
    rows = timeline.add(
        group_snapshot(2, group(), [event(STARTED, 1_000, 0), event(STABLE, 2_000, 1)]), whole_history=True
    )
    assert timeline.add(group_snapshot(4, group("PreparingRebalance", ()))) == rows
    assert timeline.has_history


def test_only_the_newest_rebalances_are_kept() -> None:
    rows = from_history(*(event(STABLE, number, number) for number in range(REBALANCES + 5)))
    assert [row.generation for row in rows] == list(range(5, REBALANCES + 5))


def test_snapshots_supply_assignments_that_the_history_lacks() -> None:
    timeline = Timeline()
    one, two = [member("c-1", [0, 1])], [member("c-1", [0]), member("c-2", [1])]
    events = [event(STARTED, 1_000, 0), event(STABLE, 2_000, 1)]
    (first,) = timeline.add(group_snapshot(3, group(generation=1, members=one), events), whole_history=True)
    assert first.assignment == {"c-1": (TopicPartitions("orders", (0, 1)),)}
    assert timeline.assignment_before(first) == {}
    begun = timeline.add(group_snapshot(5, group(PREPARING, generation=1), [event(STARTED, 4_000, 1)]))[-1]
    assert timeline.assignment_before(begun) == first.assignment
    second = timeline.add(group_snapshot(7, group(generation=2, members=two), [event(STABLE, 6_000, 2)]))[-1]
    assert second.assignment == {"c-1": (TopicPartitions("orders", (0,)),), "c-2": (TopicPartitions("orders", (1,)),)}
    assert timeline.assignment_before(second) == first.assignment
    # The row as it was displayed before the rebalance ended.
    assert timeline.assignment_before(begun) == first.assignment


def test_the_assignment_before_the_oldest_row_is_known_if_a_snapshot_showed_it() -> None:
    timeline = Timeline()
    timeline.add(group_snapshot(1, group(generation=4, members=[member("c-1", [0])]), ()), whole_history=True)
    (row,) = timeline.add(group_snapshot(5, group(PREPARING, generation=4), [event(STARTED, 4_000, 4)]))
    assert timeline.assignment_before(row) == {"c-1": (TopicPartitions("orders", (0,)),)}
    (row,) = Timeline().add(
        group_snapshot(5, group(PREPARING, generation=4), [event(STARTED, 4_000, 4)]), whole_history=True
    )
    assert timeline.assignment_before(row) is not None
    assert Timeline().assignment_before(row) is None


def test_the_assignment_before_a_rebalance_of_an_empty_group_is_empty() -> None:
    timeline = Timeline()
    rows = timeline.add(
        group_snapshot(9, group(), [event(EMPTY, 1_000, 3), event(STARTED, 2_000, 3), event(STABLE, 3_000, 4)])
    )
    assert timeline.assignment_before(rows[-1]) == {}


@given(
    st.lists(st.tuples(st.sampled_from([STARTED, STABLE, EMPTY, REPLACED, DELETED]), st.integers(0, 2)), max_size=30)
)
def test_only_the_newest_row_can_be_under_way_and_each_end_event_is_a_row(steps: list[tuple[str, int]]) -> None:
    generation, events = 0, []
    for place, (kind, more) in enumerate(steps):
        generation += more
        events.append(event(kind, place, generation))
    whole = from_history(*events, state=PREPARING)
    assert all((row.ended_ms is None) == (row.is_under_way) for row in whole)
    assert not any(row.is_under_way for row in whole[:-1])
    ends = [row for row in whole if row.outcome not in ("under way", "superseded", "interrupted")]
    assert len(ends) == sum(kind != STARTED for kind, _ in steps)
    assert [row.started_ms for row in whole] == sorted(row.started_ms for row in whole)
    timeline = Timeline()
    timeline.add(group_snapshot(0, group(PREPARING), ()), whole_history=True)
    for place, each in enumerate(events):
        timeline.add(group_snapshot(place + 1, group(PREPARING), [each]))
    assert timeline.rows == whole
