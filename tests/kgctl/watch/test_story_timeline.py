"""The timeline from the story of a group: one row a rebalance, whatever cuts it short."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.groups import TopicPartitions
from kgctl.model.history import GroupEventRow
from kgctl.model.watched import Rebalance
from kgctl.watch.kept import REBALANCES
from kgctl.watch.rebalances import Timeline
from tests.kgctl.watch.looks import event, group, look_at, member

STARTED, STABLE, EMPTY, REPLACED, DELETED = "rebalance_started", "stable", "empty", "member_replaced", "deleted"
PREPARING = "PreparingRebalance"


def told(*events: GroupEventRow, state: str = "Stable", at_s: float = 100) -> tuple[Rebalance, ...]:
    return Timeline().add(look_at(at_s, group(state), events), anew=True)


def kinds(rows: Iterable[Rebalance]) -> list[tuple[int, int | None, int | None, str]]:
    return [(row.started_ms, row.ended_ms, row.generation, row.outcome) for row in rows]


def test_a_rebalance_is_one_row_with_all_that_its_end_tells() -> None:
    (row,) = told(
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


def test_a_rebalance_under_way_has_no_end_and_gets_it_from_a_later_look() -> None:
    timeline = Timeline()
    begun = [event(STARTED, 1_000, 4, cause="member joined", joined=("c-2",), members=2)]
    (row,) = timeline.add(look_at(2, group(PREPARING), begun), anew=True)
    assert (row.ended_ms, row.generation, row.outcome, row.cause, row.joined) == (
        None,
        None,
        "",
        "member joined",
        ("c-2",),
    )
    assert timeline.add(look_at(4, group(PREPARING), ())) == (row,)
    rows = timeline.add(look_at(6, group("CompletingRebalance"), [event(STABLE, 5_000, 5)]))
    assert kinds(rows) == [(1_000, 5_000, 5, "stable")]


def test_a_rebalance_that_another_cuts_short_led_to_a_generation_that_was_never_stable() -> None:
    rows = told(
        event(STARTED, 1_000, 4, cause="member joined"),
        event(STARTED, 3_000, 5, cause="sync timed out"),
        event(STABLE, 6_000, 6, cause="sync timed out"),
    )
    assert kinds(rows) == [(1_000, 3_000, 5, "cut short"), (3_000, 6_000, 6, "stable")]
    assert [row.cause for row in rows] == ["member joined", "sync timed out"]


def test_a_rebalance_that_a_restart_interrupted_has_no_length() -> None:
    rows = told(event(STARTED, 1_000, 4), event(STARTED, 9_000, 4), event(EMPTY, 9_500, 6), state="Empty")
    assert kinds(rows) == [(1_000, 1_000, None, "interrupted"), (9_000, 9_500, 6, "empty")]
    assert rows[1].assignment == {}


def test_an_interrupted_rebalance_is_not_taken_for_one_under_way() -> None:
    timeline = Timeline()
    begun = [event(STARTED, 1_000, 4)]
    assert kinds(timeline.add(look_at(2, group(), begun), anew=True)) == [(1_000, None, None, "")]
    assert kinds(timeline.add(look_at(4, group(), ()))) == [(1_000, 1_000, None, "interrupted")]
    # It began in the moment between the description and the story: a look within a minute cannot tell.
    assert kinds(told(*begun, at_s=61)) == [(1_000, None, None, "")]
    assert kinds(told(*begun, at_s=61.1)) == [(1_000, 1_000, None, "interrupted")]
    assert kinds(told(*begun, at_s=900, state=PREPARING)) == [(1_000, None, None, "")]


def test_a_rebalance_that_began_after_the_description_goes_on_whatever_the_clock_of_the_broker_is() -> None:
    for behind_s in (0, 3_600):
        timeline = Timeline()
        settled = group(state_since_ms=1_000)
        timeline.add(look_at(10 + behind_s, settled, ()), anew=True)
        timeline.add(look_at(12 + behind_s, settled, [event(STARTED, 12_000, 4)]))
        rows = timeline.add(look_at(14 + behind_s, group(PREPARING), [event(STABLE, 13_000, 5)]))
        assert kinds(rows) == [(12_000, 13_000, 5, "stable")]


def test_a_rebalance_that_a_restart_took_away_is_over_whatever_the_clock_of_the_broker_is() -> None:
    for ahead_s in (0, 3_600):
        timeline = Timeline()
        begun_ms = 12_000 + ahead_s * 1000
        timeline.add(look_at(13, group(PREPARING, state_since_ms=begun_ms), [event(STARTED, begun_ms, 4)]), anew=True)
        rows = timeline.add(look_at(15, group("Empty", (), state_since_ms=begun_ms + 900), ()))
        assert kinds(rows) == [(begun_ms, begun_ms, None, "interrupted")]


def test_the_end_of_a_rebalance_whose_beginning_is_no_longer_kept_says_when_it_began() -> None:
    assert kinds(told(event(STABLE, 9_000, 5, prepare_ms=3_000, complete_ms=1_000))) == [(5_000, 9_000, 5, "stable")]
    assert kinds(told(event(EMPTY, 9_000, 5, prepare_ms=3_000))) == [(6_000, 9_000, 5, "empty")]


def test_a_replaced_member_and_a_deleted_group_have_their_place_without_a_length() -> None:
    rows = told(
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


def test_events_that_only_a_newer_broker_has_are_left_out() -> None:
    assert told(event("paused", 1_000, 1)) == ()


def test_events_that_cannot_be_read_are_counted_and_the_others_told() -> None:
    timeline = Timeline()
    lost = event("unreadable", 0, -1)
    events = [event(STARTED, 1_000, 0), lost, event(STABLE, 2_000, 1)]
    assert kinds(timeline.add(look_at(2, group(), events), anew=True)) == [(1_000, 2_000, 1, "stable")]
    timeline.add(look_at(4, group(), [lost]))
    assert timeline.unreadable == 2
    timeline.add(look_at(6, group(), events), anew=True)
    assert timeline.unreadable == 1


def test_a_story_that_is_told_anew_takes_the_place_of_the_one_before() -> None:
    timeline = Timeline()
    events = [event(STARTED, 1_000, 0), event(STABLE, 2_000, 1)]
    first = timeline.add(look_at(2, group(), events), anew=True)
    assert timeline.add(look_at(4, group(), events), anew=True) == first
    assert len(timeline.add(look_at(6, group(), [event(REPLACED, 3_000, 1)]))) == 2


def test_a_look_at_which_the_story_could_not_be_asked_leaves_the_rows_as_they_are() -> None:
    timeline = Timeline()
    rows = timeline.add(look_at(2, group(), [event(STARTED, 1_000, 0), event(STABLE, 2_000, 1)]), anew=True)
    assert timeline.add(look_at(4, group("PreparingRebalance", ()))) == rows
    assert timeline.is_told


def test_the_newest_rebalances_are_kept() -> None:
    rows = told(*(event(STABLE, number, number) for number in range(REBALANCES + 5)))
    assert [row.generation for row in rows] == list(range(5, REBALANCES + 5))


def test_looks_tell_who_got_what_where_the_story_does_not() -> None:
    timeline = Timeline()
    one, two = [member("c-1", [0, 1])], [member("c-1", [0]), member("c-2", [1])]
    events = [event(STARTED, 1_000, 0), event(STABLE, 2_000, 1)]
    (first,) = timeline.add(look_at(3, group(generation=1, members=one), events), anew=True)
    assert first.assignment == {"c-1": (TopicPartitions("orders", (0, 1)),)}
    assert timeline.assignment_before(first) == {}
    begun = timeline.add(look_at(5, group(PREPARING, generation=1), [event(STARTED, 4_000, 1)]))[-1]
    assert timeline.assignment_before(begun) == first.assignment
    second = timeline.add(look_at(7, group(generation=2, members=two), [event(STABLE, 6_000, 2)]))[-1]
    assert second.assignment == {"c-1": (TopicPartitions("orders", (0,)),), "c-2": (TopicPartitions("orders", (1,)),)}
    assert timeline.assignment_before(second) == first.assignment
    # The row on display before it ended.
    assert timeline.assignment_before(begun) == first.assignment


def test_what_was_assigned_before_the_oldest_row_is_known_if_a_look_has_shown_it() -> None:
    timeline = Timeline()
    timeline.add(look_at(1, group(generation=4, members=[member("c-1", [0])]), ()), anew=True)
    (row,) = timeline.add(look_at(5, group(PREPARING, generation=4), [event(STARTED, 4_000, 4)]))
    assert timeline.assignment_before(row) == {"c-1": (TopicPartitions("orders", (0,)),)}
    (row,) = Timeline().add(look_at(5, group(PREPARING, generation=4), [event(STARTED, 4_000, 4)]), anew=True)
    assert timeline.assignment_before(row) is not None
    assert Timeline().assignment_before(row) is None


def test_before_a_rebalance_that_follows_an_empty_group_nobody_owned_anything() -> None:
    timeline = Timeline()
    rows = timeline.add(
        look_at(9, group(), [event(EMPTY, 1_000, 3), event(STARTED, 2_000, 3), event(STABLE, 3_000, 4)])
    )
    assert timeline.assignment_before(rows[-1]) == {}


@given(
    st.lists(st.tuples(st.sampled_from([STARTED, STABLE, EMPTY, REPLACED, DELETED]), st.integers(0, 2)), max_size=30)
)
def test_only_the_newest_row_can_be_under_way_and_each_end_is_a_row(steps: list[tuple[str, int]]) -> None:
    generation, events = 0, []
    for place, (kind, more) in enumerate(steps):
        generation += more
        events.append(event(kind, place, generation))
    whole = told(*events, state=PREPARING)
    assert all((row.ended_ms is None) == (row.outcome == "") for row in whole)
    assert all(row.outcome != "" for row in whole[:-1])
    ends = [row for row in whole if row.outcome not in ("", "cut short", "interrupted")]
    assert len(ends) == sum(kind != STARTED for kind, _ in steps)
    assert [row.started_ms for row in whole] == sorted(row.started_ms for row in whole)
    timeline = Timeline()
    timeline.add(look_at(0, group(PREPARING), ()), anew=True)
    for place, each in enumerate(events):
        timeline.add(look_at(place + 1, group(PREPARING), [each]))
    assert timeline.rows == whole
