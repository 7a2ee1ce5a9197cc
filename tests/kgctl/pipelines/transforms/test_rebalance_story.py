"""The rules by which rebalances follow from events and records, without Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipelines.transforms.rebalance_story import (
    Event,
    Generation,
    Rebalance,
    Seat,
    Told,
    compare,
    follow,
    generation_from_json,
)


def story(*events: Event) -> list[Rebalance]:
    told, found = Told(), []
    for event in events:
        told, rebalance = follow(told, event)
        found += [rebalance] if rebalance else []
    return found


def started(at_ms: int, rejected: int = 0) -> Event:
    return Event("g", "rebalance_started", 3, at_ms, "member joined", commits_rejected=rejected)


def stable(at_ms: int, **told: object) -> Event:
    return Event("g", "stable", 4, at_ms, "member joined", **told)  # type: ignore[arg-type]


def test_a_rebalance_lasts_from_its_beginning_to_its_end() -> None:
    (found,) = story(started(1_000), stable(1_250, joined=("m",), members=2, partitions_moved=3))
    assert (found.started_ms, found.ended_ms, found.duration_ms, found.duration_source) == (1_000, 1_250, 250, "events")
    assert (found.generation, found.joined, found.members, found.moved_parts) == (4, ("m",), 2, 3)


def test_a_rebalance_that_is_cut_short_began_with_the_first_of_both() -> None:
    (found,) = story(started(1_000), started(1_100), stable(1_250))
    assert (found.started_ms, found.duration_ms) == (1_000, 250)


def test_without_a_beginning_the_phases_tell_it() -> None:
    (found,) = story(stable(1_250, prepare_ms=200, complete_ms=20))
    assert (found.started_ms, found.duration_ms) == (1_030, 220)


def test_without_beginning_and_phases_nothing_is_made_up() -> None:
    (found,) = story(stable(1_250))
    assert (found.started_ms, found.duration_ms) == (None, None)


def test_commits_that_were_refused_are_added_up_since_the_generation_before() -> None:
    replaced = Event("g", "member_replaced", 4, 900, commits_rejected=1)
    first, second = story(replaced, started(1_000, 2), stable(1_250, commits_rejected=4), stable(2_000))
    assert (first.commits_rejected, second.commits_rejected) == (7, 0)


def test_a_member_that_is_replaced_ends_no_rebalance() -> None:
    (found,) = story(started(1_000), Event("g", "member_replaced", 3, 1_100), stable(1_250))
    assert found.started_ms == 1_000


def test_what_is_told_of_a_deleted_group_is_forgotten() -> None:
    (found,) = story(started(1_000, 5), Event("g", "deleted", 3, 1_100), stable(1_250))
    assert (found.started_ms, found.commits_rejected) == (None, 0)


def test_events_of_later_brokers_change_nothing() -> None:
    (found,) = story(started(1_000), Event("g", "assigned", 3, 1_100), stable(1_250))
    assert found.started_ms == 1_000


def seat(member_id: str, *parts: int, instance_id: str | None = None) -> Seat:
    return Seat(member_id, instance_id, (("t", parts),))


def test_members_that_came_and_went_and_partitions_that_moved() -> None:
    before = Generation(4, (seat("a", 0, 1, 2), seat("b", 3)))
    now = Generation(5, (seat("a", 0, 1), seat("c", 2, 4)))
    found = compare("g", before, now, 1_000)
    assert found is not None
    # 2 went from a to c, 3 lost its owner; 4 had none before.
    assert (found.joined, found.left, found.moved_parts) == (("c",), ("b",), 2)
    assert (found.members, found.skew, found.generation, found.ended_ms) == (2, 1.0, 5, 1_000)
    assert (found.started_ms, found.duration_ms, found.duration_source) == (None, None, "log")


def test_a_static_member_under_a_new_id_neither_came_nor_went() -> None:
    before = Generation(4, (seat("a-1", 0, instance_id="a"),))
    found = compare("g", before, Generation(5, (seat("a-2", 0, instance_id="a"),)), 0)
    assert found is not None
    assert (found.joined, found.left, found.moved_parts) == ((), (), 0)


def test_the_same_generation_is_no_rebalance() -> None:
    before = Generation(4, (seat("a-1", 0, instance_id="a"),))
    assert compare("g", before, Generation(4, (seat("a-2", 0, instance_id="a"),)), 0) is None


def test_a_group_that_was_made_for_its_commits_has_no_rebalance() -> None:
    assert compare("g", None, Generation(0, ()), 0) is None


def test_all_members_of_the_first_generation_came() -> None:
    found = compare("g", None, Generation(1, (seat("a", 0, 1, 2), seat("b"))), 0)
    assert found is not None
    # 3 partitions of 2 members: 1.5 each, and one has 3.
    assert (found.joined, found.left, found.moved_parts, found.skew) == (("a", "b"), (), 0, 2.0)


def test_who_came_into_a_group_that_is_seen_for_the_first_time_is_not_known() -> None:
    found = compare("g", None, Generation(7, (seat("a", 0),)), 0)
    assert found is not None
    assert (found.joined, found.left, found.moved_parts, found.members) == (None, None, None, 1)


def test_a_group_that_got_empty_is_a_rebalance_without_moves() -> None:
    found = compare("g", Generation(4, (seat("a", 0),)), Generation(5, ()), 0)
    assert found is not None
    assert (found.joined, found.left, found.members, found.moved_parts, found.skew) == ((), ("a",), 0, None, None)


def test_assignments_that_cannot_be_read_leave_moves_unknown() -> None:
    found = compare("g", Generation(4, (seat("a", 0),)), Generation(5, (Seat("a", None, None),)), 0)
    assert found is not None
    assert (found.joined, found.moved_parts, found.skew) == ((), None, None)


SEATS = st.builds(
    Seat,
    st.text(max_size=5),
    st.none() | st.text(max_size=3),
    st.none() | st.lists(st.tuples(st.text(max_size=4), st.lists(st.integers(0, 9), max_size=3).map(tuple))).map(tuple),
)


@given(st.builds(Generation, st.integers(0, 2**31 - 1), st.lists(SEATS, max_size=3).map(tuple)))
def test_a_generation_comes_back_from_its_state(generation: Generation) -> None:
    assert generation_from_json(generation.to_json()) == generation
