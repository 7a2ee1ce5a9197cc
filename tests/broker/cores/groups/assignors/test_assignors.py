"""What every target assignment promises, in groups of any shape: whole, valid, balanced, and no more changed than necessary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cores.groups.assignors.interface import (
    SERVER_ASSIGNORS,
    Assignment,
    MemberSpec,
    PartitionAssignorError,
    load_assignor,
)
from tests.broker.cores.groups.assignors.vectors import Topics

every_assignor = pytest.mark.parametrize("name", SERVER_ASSIGNORS)
IDS = [bytes([number]) * 16 for number in range(1, 7)]
A, B, C = IDS[:3]


def group(**subscribed: Collection[bytes]) -> dict[str, MemberSpec]:
    return {member_id: MemberSpec(topics, {}) for member_id, topics in subscribed.items()}


def assign(name: str, members: Mapping[str, MemberSpec], counts: dict[bytes, int]) -> dict[str, Assignment]:
    is_homogeneous = len({frozenset(member.subscribed) for member in members.values()}) <= 1
    return load_assignor(name).assign(members, is_homogeneous, Topics(counts))


def after(members: Mapping[str, MemberSpec], assigned: Mapping[str, Assignment]) -> dict[str, MemberSpec]:
    """The members with what they were assigned."""
    return {member_id: member._replace(assigned=assigned[member_id]) for member_id, member in members.items()}


def owned(assignment: Assignment) -> set[tuple[bytes, int]]:
    return {(topic, partition) for topic, partitions in assignment.items() for partition in partitions}


def size(assignment: Assignment) -> int:
    return sum(map(len, assignment.values()))


counts_of_topics = st.dictionaries(st.sampled_from(IDS), st.integers(1, 40), min_size=1)
subscriptions = st.dictionaries(st.text("abc123", min_size=1, max_size=4), st.sets(st.sampled_from(IDS)), min_size=1)


@every_assignor
@given(counts=counts_of_topics, wanted=subscriptions, grown=st.integers(0, 5))
def test_each_partition_goes_to_one_subscriber_and_a_second_call_changes_nothing(
    name: str, counts: dict[bytes, int], wanted: dict[str, set[bytes]], grown: int
) -> None:
    members = group(**{member_id: sorted(topics & counts.keys()) for member_id, topics in wanted.items()})
    for more in (0, grown):
        counts = {topic: count + more for topic, count in counts.items()}
        assigned = assign(name, members, counts)
        given_out = Counter(partition for assignment in assigned.values() for partition in owned(assignment))
        subscribed = {topic for member in members.values() for topic in member.subscribed}
        assert given_out == Counter((topic, number) for topic in subscribed for number in range(counts[topic]))
        for member_id, assignment in assigned.items():
            assert assignment.keys() <= set(members[member_id].subscribed)
            assert all(assignment.values())
        members = after(members, assigned)
        again = assign(name, members, counts)
        assert all(again[member_id] is members[member_id].assigned for member_id in members)


@given(counts=counts_of_topics, sizes=st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_uniform_is_balanced_and_moves_no_more_than_balance_needs(counts: dict[bytes, int], sizes: list[int]) -> None:
    members: dict[str, MemberSpec] = {}
    for members_now in sizes:
        before = members
        members = {f"m{number}": before.get(f"m{number}", MemberSpec([*counts], {})) for number in range(members_now)}
        assigned = assign("uniform", members, counts)
        quota, extra = divmod(sum(counts.values()), members_now)
        assert sorted(map(size, assigned.values())) == [quota] * (members_now - extra) + [quota + 1] * extra
        kept = sum(len(owned(member.assigned) & owned(assigned[member_id])) for member_id, member in members.items())
        at_most = sorted((size(member.assigned) for member in members.values()), reverse=True)
        assert kept == sum(min(has, quota + (place < extra)) for place, has in enumerate(at_most))
        members = after(members, assigned)


def test_uniform_balances_different_subscriptions_over_all_topics() -> None:
    assigned = assign("uniform", group(one=[A, B], two=[B, C], three=[A, B, C]), {A: 10, B: 7, C: 4})
    assert [size(assigned[member_id]) for member_id in ("one", "two", "three")] == [7, 7, 7]


def test_uniform_takes_partitions_from_the_loaded_member_when_one_joins_a_topic() -> None:
    members = group(one=[A], two=[B])
    members = after(members, assign("uniform", members, {A: 8, B: 2})) | group(two=[A, B])
    members["two"] = MemberSpec([A, B], {B: (0, 1)})
    assigned = assign("uniform", members, {A: 8, B: 2})
    assert [size(assigned[member_id]) for member_id in ("one", "two")] == [5, 5]
    assert owned(assigned["one"]) < owned(members["one"].assigned)
    assert owned(assigned["two"]) > {(B, 0), (B, 1)}


def test_range_co_partitions_topics_with_as_many_partitions() -> None:
    assigned = assign("range", group(one=[A, B], two=[A, B], three=[A, B]), {A: 7, B: 7})
    assert all(assignment[A] == assignment[B] for assignment in assigned.values())
    assert assigned == {
        "one": {A: (0, 1, 2), B: (0, 1, 2)},
        "three": {A: (3, 4), B: (3, 4)},
        "two": {A: (5, 6), B: (5, 6)},
    }


def test_range_puts_static_members_first_by_instance_id() -> None:
    members = {
        "a": MemberSpec([A], {}),
        "c": MemberSpec([A], {}, "second"),
        "z": MemberSpec([A], {}, "first"),
        "\u0100": MemberSpec([A], {}),
        "y": MemberSpec([A], {}),
    }
    assigned = assign("range", members, {A: 5})
    assert assigned == {"z": {A: (0,)}, "c": {A: (1,)}, "a": {A: (2,)}, "y": {A: (3,)}, "\u0100": {A: (4,)}}


@every_assignor
def test_members_in_excess_get_nothing(name: str) -> None:
    assigned = assign(name, group(one=[A], two=[A], three=[A]), {A: 2})
    assert sorted(map(size, assigned.values())) == [0, 1, 1]


@every_assignor
def test_a_group_without_members_or_subscriptions_gets_nothing(name: str) -> None:
    assert assign(name, {}, {A: 1}) == {}
    assert assign(name, group(one=[], two=[]), {A: 1}) == {"one": {}, "two": {}}
    had = {"one": MemberSpec([], {A: (0,)}), "two": MemberSpec([], {A: (1,)})}
    assert assign(name, had, {A: 2}) == {"one": {}, "two": {}}


@every_assignor
@pytest.mark.parametrize("others", [[B], [A, B]])
def test_a_topic_that_does_not_exist_is_an_error(name: str, others: list[bytes]) -> None:
    with pytest.raises(PartitionAssignorError, match="which does not exist"):
        assign(name, group(one=[B], two=others), {A: 1})


@every_assignor
def test_racks_make_no_difference(name: str) -> None:
    members = group(one=[A], two=[A])
    racked = {
        member_id: member._replace(rack_id=f"r{place}") for place, (member_id, member) in enumerate(members.items())
    }
    assert assign(name, racked, {A: 9}) == assign(name, members, {A: 9})


def test_a_large_group_is_assigned_and_joined() -> None:
    ids = [number.to_bytes(16, "big") for number in range(100)]
    counts = dict.fromkeys(ids, 100)
    members = group(**{f"member-{number}": ids for number in range(1_000)})
    members = after(members, assign("uniform", members, counts)) | group(newcomer=ids)
    assigned = assign("uniform", members, counts)
    assert size(assigned["newcomer"]) == 9
    changed = [member_id for member_id in members if assigned[member_id] is not members[member_id].assigned]
    assert len(changed) == 10  # nine members give it a partition each
