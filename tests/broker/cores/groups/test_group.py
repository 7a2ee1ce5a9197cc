"""A classic group by itself: its transitions, and the invariants that it checks."""

from __future__ import annotations

from itertools import product

import pytest

from broker.cores.core import BrokenInvariant
from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.classic.member import Member, Protocols
from broker.cores.groups.classic.states import GroupState

EMPTY, PREPARING, COMPLETING, STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)
LEGAL = {
    (EMPTY, PREPARING),
    (STABLE, PREPARING),
    (COMPLETING, PREPARING),
    (PREPARING, COMPLETING),
    (PREPARING, EMPTY),
    (COMPLETING, STABLE),
}
# The legal transitions that lead from Empty to each state.
WAYS = {EMPTY: [], PREPARING: [PREPARING], COMPLETING: [PREPARING, COMPLETING], STABLE: [PREPARING, COMPLETING, STABLE]}


def group_in(state: GroupState) -> ClassicGroup:
    group = ClassicGroup("g", offsets_loaded=True)
    for step in WAYS[state]:
        group.transition(step, 1)
    return group


def member(name: str, instance: str | None = None, protocols: Protocols = (("range", b"one"),)) -> Member:
    return Member(name, instance, "c", "/127.0.0.1", 60_000, 10_000, protocols)


@pytest.mark.parametrize(("before", "after"), product(WAYS, WAYS), ids=lambda state: state.value)
def test_a_group_makes_only_legal_transitions(before: GroupState, after: GroupState) -> None:
    group = group_in(before)
    if (before, after) in LEGAL:
        group.transition(after, 2)
        assert (group.state, group.previous_state, group.state_timestamp_ms) == (after, before, 2)
    else:
        with pytest.raises(BrokenInvariant):
            group.transition(after, 2)
        assert group.state is before


@pytest.mark.parametrize(("state", "allowed"), [(EMPTY, True), (STABLE, True), (COMPLETING, True), (PREPARING, False)])
def test_a_rebalance_can_start_in_every_state_except_preparing(state: GroupState, allowed: bool) -> None:
    assert group_in(state).can_rebalance() is allowed


def test_an_instance_id_belongs_to_one_member() -> None:
    group = ClassicGroup("g", offsets_loaded=True)
    group.add(member("m1", "i1"), "consumer")
    with pytest.raises(BrokenInvariant):
        group.add(member("m2", "i1"), "consumer")
    assert list(group.members) == ["m1"]
    group.remove("m1")
    group.add(member("m2", "i1"), "consumer")
    assert group.static_members == {"i1": "m2"}


def test_metadata_of_an_unsupported_protocol_breaks_an_invariant() -> None:
    one = member("m1", protocols=(("range", b"for range"), ("sticky", b"for sticky")))
    assert [one.metadata("range"), one.metadata("sticky")] == [b"for range", b"for sticky"]
    for other in ("roundrobin", None):
        with pytest.raises(BrokenInvariant):
            one.metadata(other)


def test_members_without_a_common_protocol_break_an_invariant() -> None:
    group = ClassicGroup("g", offsets_loaded=True)
    group.add(member("m1"), "consumer")
    group.add(member("m2", protocols=(("sticky", b""),)), "consumer")
    with pytest.raises(BrokenInvariant):
        group.select_protocol()
    group.remove("m2")
    assert group.select_protocol() == "range"
