"""The rules by which rebalances follow from events and from records, without Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipelines.transforms.rebalance_rules import (
    Event,
    Generation,
    OpenRebalance,
    Rebalance,
    Seat,
    compare,
    follow,
    generation_from_json,
)


def rebalances_of(*events: Event) -> list[Rebalance]:
    state, found = OpenRebalance(), list[Rebalance]()
    for event in events:
        state, rebalance = follow(state, event)
        found += [rebalance] if rebalance else []
    return found


def started(at_ms: int, rejected: int = 0) -> Event:
    return Event("g", "rebalance_started", 3, at_ms, "member joined", commits_rejected=rejected)


def stable(at_ms: int, **fields: object) -> Event:
    return Event("g", "stable", 4, at_ms, "member joined", **fields)  # type: ignore[arg-type]


def test_a_rebalance_lasts_from_its_start_to_its_end() -> None:
    (found,) = rebalances_of(started(1_000), stable(1_250, joined=("m",), members=2, partitions_moved=3))
    assert (found.started_ms, found.ended_ms, found.duration_ms, found.duration_source) == (1_000, 1_250, 250, "events")
    assert (found.generation, found.joined, found.members, found.moved_parts) == (4, ("m",), 2, 3)


def test_a_superseded_rebalance_counts_from_the_first_start() -> None:
    (found,) = rebalances_of(started(1_000), started(1_100), stable(1_250))
    assert (found.started_ms, found.duration_ms) == (1_000, 250)


def test_an_unknown_start_is_computed_from_the_phases() -> None:
    (found,) = rebalances_of(stable(1_250, prepare_ms=200, complete_ms=20))
    assert (found.started_ms, found.duration_ms) == (1_030, 220)


def test_without_start_and_phases_there_is_no_duration() -> None:
    (found,) = rebalances_of(stable(1_250))
    assert (found.started_ms, found.duration_ms) == (None, None)


def test_rejected_commits_are_summed_since_the_previous_generation() -> None:
    replaced = Event("g", "member_replaced", 4, 900, commits_rejected=1)
    first, second = rebalances_of(replaced, started(1_000, 2), stable(1_250, commits_rejected=4), stable(2_000))
    assert (first.commits_rejected, second.commits_rejected) == (7, 0)


def test_a_replaced_member_does_not_end_a_rebalance() -> None:
    (found,) = rebalances_of(started(1_000), Event("g", "member_replaced", 3, 1_100), stable(1_250))
    assert found.started_ms == 1_000


def test_a_deleted_group_leaves_no_state() -> None:
    (found,) = rebalances_of(started(1_000, 5), Event("g", "deleted", 3, 1_100), stable(1_250))
    assert (found.started_ms, found.commits_rejected) == (None, 0)


def test_unknown_events_are_ignored() -> None:
    (found,) = rebalances_of(started(1_000), Event("g", "assigned", 3, 1_100), stable(1_250))
    assert found.started_ms == 1_000


def seat(member_id: str, *parts: int, instance_id: str | None = None) -> Seat:
    return Seat(member_id, instance_id, (("t", parts),))


def test_joined_and_left_members_and_moved_partitions() -> None:
    before = Generation(4, (seat("a", 0, 1, 2), seat("b", 3)))
    now = Generation(5, (seat("a", 0, 1), seat("c", 2, 4)))
    found = compare("g", before, now, 1_000)
    assert found is not None
    # 2 went from a to c, 3 lost its owner; 4 had none before.
    assert (found.joined, found.left, found.moved_parts) == (("c",), ("b",), 2)
    assert (found.members, found.skew, found.generation, found.ended_ms) == (2, 1.0, 5, 1_000)
    assert (found.started_ms, found.duration_ms, found.duration_source) == (None, None, "log")


def test_a_static_member_with_a_new_id_has_not_joined_or_left() -> None:
    before = Generation(4, (seat("a-1", 0, instance_id="a"),))
    found = compare("g", before, Generation(5, (seat("a-2", 0, instance_id="a"),)), 0)
    assert found is not None
    assert (found.joined, found.left, found.moved_parts) == ((), (), 0)


def test_the_same_generation_is_not_a_rebalance() -> None:
    before = Generation(4, (seat("a-1", 0, instance_id="a"),))
    assert compare("g", before, Generation(4, (seat("a-2", 0, instance_id="a"),)), 0) is None


def test_a_group_that_only_commits_has_no_rebalance() -> None:
    assert compare("g", None, Generation(0, ()), 0) is None


def test_all_members_of_the_first_generation_joined() -> None:
    found = compare("g", None, Generation(1, (seat("a", 0, 1, 2), seat("b"))), 0)
    assert found is not None
    # 3 partitions of 2 members: 1.5 each, and one has 3.
    assert (found.joined, found.left, found.moved_parts, found.skew) == (("a", "b"), (), 0, 2.0)


def test_the_first_record_of_a_later_generation_does_not_show_who_joined() -> None:
    found = compare("g", None, Generation(7, (seat("a", 0),)), 0)
    assert found is not None
    assert (found.joined, found.left, found.moved_parts, found.members) == (None, None, None, 1)


def test_a_group_that_becomes_empty_is_a_rebalance_without_moved_partitions() -> None:
    found = compare("g", Generation(4, (seat("a", 0),)), Generation(5, ()), 0)
    assert found is not None
    assert (found.joined, found.left, found.members, found.moved_parts, found.skew) == ((), ("a",), 0, None, None)


def test_undecodable_assignments_leave_moved_partitions_unknown() -> None:
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
def test_a_generation_survives_serialization(generation: Generation) -> None:
    assert generation_from_json(generation.to_json()) == generation
