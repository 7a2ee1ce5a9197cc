"""The sticky assignors balance as well as possible and keep owners where they can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgctl.client.consumer.assignors.assignor import Assignment, ClusterView, Subscription
from kgctl.client.consumer.assignors.loading import load_assignor
from kgctl.client.consumer.assignors.past_ownership import (
    MemberData,
    decode_cooperative,
    decode_sticky,
    encode_cooperative,
    encode_sticky,
)
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.model.topic_partition import TopicPartition
from tests.kgctl.client.consumer.assignors.groups import (
    Group,
    Shares,
    check_balanced,
    check_handed_over,
    moves,
    parts,
)

both = pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
RACKS = ["r1", "r2", "r3"]


def topics_of(group: Group) -> dict[str, Sequence[str]]:
    return {member_id: member.topics for member_id, member in group.members.items()}


def group_of(name: str, counts: Mapping[str, int], members: str) -> Group:
    """Members that subscribe to everything."""
    group = Group(name, counts)
    for member_id in members.split():
        group.join(member_id, *counts)
    return group


def sizes(shares: Shares) -> list[int]:
    return sorted(len(share) for share in shares.values())


# --- members with the same topics ---


@both
def test_all_partitions_are_dealt_in_turn_at_first(name: str) -> None:
    shares = group_of(name, {"t": 3, "u": 2}, "a b").rebalance()
    assert shares == {"a": parts("t-0 t-2 u-1"), "b": parts("t-1 u-0")}


@both
def test_when_a_member_leaves_the_others_keep_everything(name: str) -> None:
    group = group_of(name, {"t": 7, "u": 5}, "a b c d")
    before = group.rebalance()
    group.leave("b")
    after = group.rebalance()
    assert all(set(before[member_id]) <= set(after[member_id]) for member_id in after)
    assert sizes(after) == [4, 4, 4]


@both
def test_when_a_member_joins_partitions_only_move_to_it(name: str) -> None:
    group = group_of(name, {"t": 7, "u": 5}, "a b c")
    before = group.rebalance()
    group.join("d", "t", "u")
    after = group.settle()
    assert all(set(after[member_id]) <= set(before[member_id]) for member_id in before)
    assert sizes(after) == [3, 3, 3, 3]


@both
def test_each_topic_is_balanced_while_members_come_and_go(name: str) -> None:
    group = group_of(name, {"t": 12, "u": 12}, "a")
    for joining, leaving, each in [("", "", 12), ("b", "", 6), ("c d", "", 3), ("", "a b", 6)]:
        for member_id in joining.split():
            group.join(member_id, "t", "u")
        for member_id in leaving.split():
            group.leave(member_id)
        for share in group.settle().values():
            assert [sum(partition.topic == topic for partition in share) for topic in "tu"] == [each, each]


@both
def test_new_partitions_and_topics_are_added_to_what_members_have(name: str) -> None:
    group = group_of(name, {"t": 3}, "a b")
    before = group.rebalance()
    group.counts["t"] = 6
    after = group.rebalance()
    assert all(set(before[member_id]) <= set(after[member_id]) for member_id in after)
    assert sizes(after) == [3, 3]


@both
def test_partitions_that_no_longer_exist_are_not_kept(name: str) -> None:
    group = group_of(name, {"t": 4, "u": 4}, "a b")
    group.rebalance()
    group.counts = {"u": 2}
    shares = group.rebalance()
    group.check(shares)
    group.counts = {}
    assert group.rebalance() == {"a": [], "b": []}


@both
def test_partitions_of_a_topic_that_was_created_again_with_fewer_are_not_kept(name: str) -> None:
    group = group_of(name, {"t": 2}, "a b")
    group.receive("a", Assignment(parts("t-3")))
    group.receive("b", Assignment(parts("t-1 t-2")))
    assert group.rebalance() == {"a": parts("t-0"), "b": parts("t-1")}


@both
def test_a_member_that_owns_the_larger_share_may_keep_it(name: str) -> None:
    group = group_of(name, {"t": 3}, "a b")
    before = group.rebalance()
    assert group.rebalance() == before
    group.counts["u"] = 2
    for member in group.members.values():
        member.topics = ("t", "u")
    after = group.settle()
    assert set(before["a"]) <= set(after["a"])
    assert sizes(after) == [2, 3]


@pytest.mark.parametrize(
    ("owned", "assigned"),
    [
        # One of two members with the smaller quota gets one more.
        (["t-0 u-1", "t-1 u-2"], ["t-0 u-1 u-0", "t-1 u-2"]),
        # Only as many members keep the larger quota as there are partitions for it.
        (["t-0 u-0 u-1", "t-1 u-2", ""], ["t-0 u-0", "t-1 u-2", "u-1"]),
        # All members have less than the smaller quota.
        (["t-0", "t-1", ""], ["t-0 u-1", "t-1 u-2", "u-0"]),
        # The members that have reached their quota get nothing more.
        (["t-0 u-0 u-1", "t-1", ""], ["t-0 u-0", "t-1 u-2", "u-1"]),
    ],
)
def test_quotas_decide_who_keeps_how_much(owned: list[str], assigned: list[str]) -> None:
    group = Group("sticky", {"t": 2, "u": 3})
    group.generation = 3
    for number, partitions in enumerate(owned):
        group.join(f"m{number}", "t", "u")
        group.receive(f"m{number}", Assignment(parts(partitions)))
    assert group.rebalance() == {f"m{number}": parts(partitions) for number, partitions in enumerate(assigned)}


# --- generations ---


@both
def test_members_of_an_older_generation_do_not_get_back_what_others_own_now(name: str) -> None:
    group = group_of(name, {"t": 6}, "a b c")
    group.rebalance()
    lost = group.members.pop("c")
    current = group.rebalance()
    group.members["c"] = lost
    group.rebalance()
    after = group.settle()
    group.check(after)
    assert sizes(after) == [2, 2, 2]
    assert set(after["a"]) <= set(current["a"])


@both
def test_a_claim_of_an_older_generation_is_ignored_whoever_comes_first(name: str) -> None:
    for order in ("new old", "old new"):
        group = Group(name, {"t": 4})
        for member_id in order.split():
            group.join(member_id, "t")
        group.generation = 1
        group.receive("old", Assignment(parts("t-0 t-1 t-2")))
        group.generation = 2
        group.receive("new", Assignment(parts("t-0 t-1")))
        assert set(group.rebalance()["new"]) == set(parts("t-0 t-1"))


@pytest.mark.parametrize(("name", "of_third"), [("sticky", "t-0"), ("cooperative-sticky", "")])
@pytest.mark.parametrize(("count", "of_first"), [(3, "t-1"), (4, "t-1 t-3")])
def test_two_claims_of_one_generation_cancel_each_other(name: str, of_third: str, count: int, of_first: str) -> None:
    group = group_of(name, {"t": count}, "a b c")
    group.generation = 5
    for member_id, owned in {"a": "t-0 t-1", "b": "t-0 t-2", "c": ""}.items():
        group.receive(member_id, Assignment(parts(owned)))
    # The cooperative assignor waits until both have revoked the partition.
    assert group.rebalance() == {"a": parts(of_first), "b": parts("t-2"), "c": parts(of_third)}


def test_a_former_owner_of_an_older_generation_gets_partitions_back_if_balance_needs_a_move() -> None:
    group = Group("sticky", {"t": 6, "u": 1})
    group.join("a", "t", "u")
    group.join("b", "t")
    group.join("c", "t")
    group.generation = 1
    group.receive("b", Assignment(parts("t-0 t-1")))
    group.generation = 2
    group.receive("a", Assignment(parts("t-0 t-1 t-2 t-3 t-4 t-5")))
    after = group.rebalance()
    group.check(after)
    assert set(after["b"]) == set(parts("t-0 t-1"))


def test_a_former_owner_that_has_unsubscribed_gets_nothing_back() -> None:
    """Kafka's assignor gives it the partition (4.1); the member then has one that it does not subscribe to."""
    group = Group("sticky", {"t": 4, "u": 1})
    group.join("a", "t", "u")
    group.join("b", "u")
    group.generation = 1
    group.receive("b", Assignment(parts("t-0 t-1")))
    group.generation = 2
    group.receive("a", Assignment(parts("t-0 t-1 t-2 t-3 u-0")))
    group.join("c", "t")
    after = group.rebalance()
    group.check(after)
    check_balanced(after, topics_of(group))


# --- members with different topics ---


@both
def test_a_round_robin_would_be_far_off_balance(name: str) -> None:
    group = Group(name, {"t0": 1, "t1": 2, "t2": 3})
    group.join("c0", "t0")
    group.join("c1", "t0", "t1")
    group.join("c2", "t0", "t1", "t2")
    assert group.rebalance() == {"c0": parts("t0-0"), "c1": parts("t1-0 t1-1"), "c2": parts("t2-0 t2-1 t2-2")}
    group.leave("c0")
    assert group.rebalance() == {"c1": parts("t1-0 t1-1 t0-0"), "c2": parts("t2-0 t2-1 t2-2")}


@both
def test_a_member_that_unsubscribes_gives_the_topic_to_the_others(name: str) -> None:
    group = group_of(name, {"t": 4, "u": 4}, "a b")
    group.rebalance()
    group.members["a"].topics = ("u",)
    after = group.settle()
    group.check(after)
    check_balanced(after, topics_of(group))


@both
def test_a_member_without_topics_gets_nothing(name: str) -> None:
    group = Group(name, {"t": 4})
    group.join("a")
    group.join("b", "t")
    assert group.rebalance() == {"a": [], "b": parts("t-0 t-1 t-2 t-3")}


@both
@pytest.mark.parametrize("alike", [True, False])
def test_large_groups_are_balanced(name: str, alike: bool) -> None:
    counts = {f"t{number}": 40 for number in range(50)}
    group = Group(name, counts)
    for number in range(100):
        group.join(f"m{number:02}", *[topic for at, topic in enumerate(counts) if alike or (at + number) % 3])
    group.rebalance()
    for number in range(0, 100, 2):
        group.leave(f"m{number:02}")
    after = group.settle()
    group.check(after)
    check_balanced(after, topics_of(group))
    assert sum(sizes(after)) == 2000


# --- racks ---


@both
def test_members_get_partitions_in_their_racks(name: str) -> None:
    group = Group(name, {"t": 6}, {"t": ["r1", "r2", "r3", "r1", "r2", "r3"]})
    for number, rack in enumerate(RACKS):
        group.join(f"m{number}", "t", rack=rack)
    shares = group.rebalance()
    assert group.mismatches(shares) == 0
    assert sizes(shares) == [2, 2, 2]


@both
@pytest.mark.parametrize("extra", [(), ("u",)])
def test_partitions_move_into_the_racks_of_members(name: str, extra: tuple[str, ...]) -> None:
    group = Group(name, {"t": 4, "u": 1}, {"t": ["r1", "r1", "r2", "r2"], "u": ["r1"]})
    group.join("a", "t", "u", rack="r1")
    group.join("b", "t", *extra, rack="r2")
    group.generation = 1
    group.receive("a", Assignment(parts("t-2 t-3")))
    group.receive("b", Assignment(parts("t-0 t-1")))
    after = group.settle()
    assert group.mismatches(after) == 0
    assert set(after["b"]) == set(parts("t-2 t-3"))


@both
def test_balance_comes_before_racks(name: str) -> None:
    group = Group(name, {"t": 4}, {"t": ["r1", "r1", "r1", "r2"]})
    group.join("a", "t", rack="r1")
    group.join("b", "t", rack="r2")
    shares = group.rebalance()
    assert sizes(shares) == [2, 2]
    assert parts("t-3")[0] in shares["b"]


@both
def test_racks_do_not_matter_if_every_rack_has_every_partition(name: str) -> None:
    group, plain = Group(name, {"t": 4}, {"t": ["r1 r2"] * 4}), Group(name, {"t": 4})
    for number, rack in enumerate(["r2", "r1"]):
        group.join(f"m{number}", "t", rack=rack)
        plain.join(f"m{number}", "t")
    assert group.rebalance() == plain.rebalance()


# --- user data ---


def test_sticky_user_data_has_javas_bytes_and_is_read_back() -> None:
    data = MemberData(parts("b-0 b-6 c-3"), 1)
    octets = bytes.fromhex("00000002 0001 62 00000002 00000000 00000006 0001 63 00000001 00000003 00000001")
    assert encode_sticky(data) == octets
    assert decode_sticky(Subscription((), octets)) == data


def test_sticky_user_data_without_generation_is_understood() -> None:
    octets = bytes.fromhex("00000001 0001 62 00000001 00000007")
    assert decode_sticky(Subscription((), octets)) == MemberData(parts("b-7"), -1)


@pytest.mark.parametrize("octets", [None, b"", b"\xff\xff\xff\xff", b"\x00\x00\x00\x01", b"rubbish"])
def test_user_data_that_cannot_be_read_means_that_nothing_was_owned(octets: bytes | None) -> None:
    assert decode_sticky(Subscription((), octets)) == MemberData()
    assert list(decode_cooperative(Subscription((), octets)).partitions) == []


def test_the_sticky_assignor_believes_user_data_and_not_the_subscription() -> None:
    subscription = Subscription(("t",), encode_sticky(MemberData(parts("t-1"), 4)), parts("t-0"), 5)
    assert decode_sticky(subscription) == MemberData(parts("t-1"), 4)


def test_the_cooperative_assignor_takes_the_generation_of_the_subscription_if_it_has_one() -> None:
    octets = encode_cooperative(4)
    assert octets == b"\x00\x00\x00\x04"
    assert decode_cooperative(Subscription(("t",), octets, parts("t-0"), 5)).generation_id == 5
    assert decode_cooperative(Subscription(("t",), octets, parts("t-0"))).generation_id == 4
    assert decode_cooperative(Subscription(("t",), None, parts("t-0"))).generation_id == -1


def test_user_data_follows_the_last_assignment() -> None:
    metadata = ConsumerGroupMetadata("group", 3, "member")
    sticky, cooperative = load_assignor("sticky"), load_assignor("cooperative-sticky")
    assert sticky.subscription_user_data(["t"]) is None
    assert cooperative.subscription_user_data(["t"]) == encode_cooperative(-1)
    for assignor in (sticky, cooperative):
        assignor.on_assignment(Assignment(parts("t-0")), metadata)
    assert sticky.subscription_user_data(["t"]) == encode_sticky(MemberData(parts("t-0"), 3))
    assert cooperative.subscription_user_data(["t"]) == encode_cooperative(3)


@both
def test_members_with_older_versions_of_the_subscription_are_understood(name: str) -> None:
    """Versions 0 and 1 of the subscription have no generation, so user data has to say it."""
    encode: Any = {"sticky": encode_sticky, "cooperative-sticky": lambda data: encode_cooperative(data.generation_id)}
    members = {
        f"m{number}": Subscription(("t",), encode[name](MemberData(parts(f"t-{number}"), 7)), parts(f"t-{number}"))
        for number in (2, 1)
    }
    members["m0"] = Subscription(("t",), None, (), 7)
    assigned = load_assignor(name).assign(ClusterView({"t": 3}), members)
    assert {member_id: list(one.partitions) for member_id, one in assigned.items()} == {
        "m2": parts("t-2"),
        "m1": parts("t-1"),
        "m0": parts("t-0"),
    }


# --- any group ---

member_ids = st.sampled_from([f"m{number}" for number in range(8)])
topic_names = ["t", "u", "v", "w"]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Group, list[Any], bool]:
    """A group and its changes; whether all members subscribe to the same topics."""
    counts = {topic: draw(st.integers(1, 6)) for topic in topic_names[: draw(st.integers(1, 4))]}
    racks: dict[str, list[str]] = {}
    if draw(st.booleans()):
        one = st.lists(st.sampled_from(RACKS), min_size=1, max_size=2).map(" ".join)
        racks = {topic: draw(st.lists(one, min_size=6, max_size=6)) for topic in counts}
    group = Group(draw(st.sampled_from(["sticky", "cooperative-sticky"])), counts, racks)
    some = st.lists(st.sampled_from(list(counts)), min_size=1, unique=True)
    alike = draw(st.booleans())
    wanted = st.just(list(counts)) if alike else some
    rack = st.sampled_from([*RACKS, None]) if racks else st.none()
    joins = st.tuples(member_ids, wanted, rack)
    for member_id, topics, where in draw(st.lists(joins, min_size=1, max_size=6)):
        group.join(member_id, *topics, rack=where)
    changes = draw(st.lists(joins | member_ids | st.sets(member_ids, max_size=2), max_size=4))
    return group, changes, alike


def apply(group: Group, change: Any) -> None:
    if isinstance(change, tuple):
        member_id, topics, rack = change
        group.join(member_id, *topics, rack=rack)
    elif isinstance(change, str) and len(group.members) > 1:
        group.members.pop(change, None)
    elif isinstance(change, set):
        group.rebalance(missed_by=change)


@settings(max_examples=60, deadline=None)
@given(histories())
def test_every_group_becomes_valid_and_balanced_and_stays_as_it_is(history: tuple[Group, list[Any], bool]) -> None:
    group, changes, _ = history
    for change in [*changes, None]:
        apply(group, change)
        shares = group.settle() if group.assignor.startswith("cooperative") else group.rebalance()
        group.check(shares)
        check_balanced(shares, topics_of(group))
    if group.racks:
        return  # partitions outside the racks of their members are assigned again each time
    again = group.rebalance()
    assert {member_id: set(share) for member_id, share in again.items()} == {
        member_id: set(share) for member_id, share in shares.items()
    }


@settings(max_examples=60, deadline=None)
@given(histories())
def test_no_two_members_swap_partitions_of_a_topic(history: tuple[Group, list[Any], bool]) -> None:
    group, changes, _ = history
    for member in group.members.values():
        member.rack = None
    group.settle()
    for change in changes:
        before = group.owned
        apply(group, change if not isinstance(change, tuple) else (*change[:2], None))
        if not isinstance(change, set):
            moved = {(partition.topic, pair) for partition, pair in moves(before, group.settle()).items()}
            assert not [pair for topic, pair in moved if (topic, pair[::-1]) in moved]


@settings(max_examples=60, deadline=None)
@given(histories())
def test_a_cooperative_member_never_gets_what_another_still_owns(history: tuple[Group, list[Any], bool]) -> None:
    group, changes, _ = history
    if not group.assignor.startswith("cooperative"):
        return
    for change in changes:
        if not isinstance(change, set):
            apply(group, change)
            before = group.owned
            check_handed_over(before, group.rebalance())


def test_one_instance_may_assign_again_and_again() -> None:
    leader = load_assignor("sticky")
    view = ClusterView({"t": 2})
    for _ in range(2):
        assigned = leader.assign(view, {"a": Subscription(("t",))})
        assert list(assigned["a"].partitions) == [TopicPartition("t", 0), TopicPartition("t", 1)]
