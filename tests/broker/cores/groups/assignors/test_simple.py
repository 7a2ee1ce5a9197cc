"""The simple assignor of share groups: rules that hold for any group. Its results are compared in test_vectors.py."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cores.groups.assignors.interface import Assignment, MemberSpec, PartitionAssignorError
from broker.cores.groups.assignors.simple import SimpleAssignor
from tests.broker.cores.groups.assignors.vectors import Topics

IDS = [number.to_bytes(16, "big") for number in range(1, 4)]
COUNTS = st.lists(st.integers(1, 12), min_size=1, max_size=3)


def assign(members: dict[str, MemberSpec], counts: list[int], *, is_homogeneous: bool = True) -> dict[str, Assignment]:
    topics = dict(zip(IDS, counts, strict=False))
    assignable = {topic: range(count) for topic, count in topics.items()}
    return SimpleAssignor().assign(members, is_homogeneous, Topics(topics), assignable)


@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_groups_without_members_or_topics_get_nothing(is_homogeneous: bool) -> None:
    assert SimpleAssignor.name == "simple"
    assert assign({}, [3], is_homogeneous=is_homogeneous) == {}
    assert assign({"a": MemberSpec([], {})}, [3], is_homogeneous=is_homogeneous) == {"a": {}}


@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_a_topic_that_does_not_exist_is_an_error(is_homogeneous: bool) -> None:
    with pytest.raises(PartitionAssignorError, match="does not exist"):
        assign({"a": MemberSpec([IDS[2]], {})}, [3], is_homogeneous=is_homogeneous)


@settings(max_examples=60, deadline=None)
@given(COUNTS, st.integers(1, 20), st.integers(0, 5))
def test_members_that_subscribe_alike_share_every_partition_evenly(counts: list[int], first: int, joining: int) -> None:
    subscribed = IDS[: len(counts)]
    assigned: dict[str, Assignment] = {}
    for size in (first, first + joining):
        members = {f"m{number}": MemberSpec(subscribed, assigned.get(f"m{number}", {})) for number in range(size)}
        assigned = assign(members, counts)
        taken = {(topic, number) for one in assigned.values() for topic, numbers in one.items() for number in numbers}
        assert taken == {(topic, number) for topic, count in zip(IDS, counts, strict=False) for number in range(count)}
        sizes = [sum(map(len, one.values())) for one in assigned.values()]
        assert min(sizes) >= 1
        assert max(sizes) <= -(-sum(counts) // size) + 1


@settings(max_examples=60, deadline=None)
@given(COUNTS, st.lists(st.sets(st.integers(0, 2), min_size=1), min_size=1, max_size=6))
def test_members_get_only_what_they_subscribe_to_and_nothing_is_left(counts: list[int], wanted: list[set[int]]) -> None:
    topics = IDS[: len(counts)]
    members = {
        f"m{number}": MemberSpec([topics[place] for place in sorted(places) if place < len(topics)], {})
        for number, places in enumerate(wanted)
    }
    assigned = assign(members, counts, is_homogeneous=False)
    assert all(assigned[member_id].keys() <= set(member.subscribed) for member_id, member in members.items())
    for topic in {topic for member in members.values() for topic in member.subscribed}:
        numbers = {number for one in assigned.values() for number in one.get(topic, ())}
        assert numbers == set(range(counts[topics.index(topic)]))
