"""What holds for every assignor, and how the range assignor uses racks."""

from __future__ import annotations

import pytest

from kgctl.client.consumer.assignors.assignor import RebalanceProtocol
from kgctl.client.consumer.assignors.loading import BUILT_IN, common_protocols, load_assignor, load_assignors
from tests.kgctl.client.consumer.assignors.groups import Group, parts

every = pytest.mark.parametrize("name", BUILT_IN)


@every
def test_a_member_without_topics_and_one_of_a_missing_topic_get_nothing(name: str) -> None:
    group = Group(name, {"t": 3})
    group.join("a")
    assert group.rebalance() == {"a": []}
    group.join("a", "missing")
    assert group.rebalance() == {"a": []}


@every
def test_a_single_member_gets_all_partitions_of_its_topics_and_no_others(name: str) -> None:
    group = Group(name, {"t": 1, "u": 2, "other": 3})
    group.join("a", "t", "u")
    assert {"a": sorted(group.rebalance()["a"])} == {"a": parts("t-0 u-0 u-1")}


@every
@pytest.mark.parametrize(("count", "second"), [(1, ""), (2, "t-1")])
def test_two_members_share_one_topic(name: str, count: int, second: str) -> None:
    group = Group(name, {"t": count})
    group.join("a", "t")
    group.join("b", "t")
    assert group.rebalance() == {"a": parts("t-0"), "b": parts(second)}


@every
def test_a_topic_of_one_member_goes_to_that_member(name: str) -> None:
    group = Group(name, {"t": 3, "u": 2})
    group.join("a", "t")
    group.join("b", "t", "u")
    group.join("c", "t")
    shares = group.rebalance()
    group.check(shares)
    assert set(parts("u-0 u-1")) <= set(shares["b"])


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_static_members_get_the_same_after_their_member_ids_change(name: str) -> None:
    def by_instance(*member_ids: str) -> dict[str, list[object]]:
        group = Group(name, {"t": 5, "u": 5})
        for number, member_id in enumerate(member_ids):
            group.join(member_id, "t", "u", instance=f"i{number}", rack=f"r{number}")
        group.join(f"{member_ids[0]}-dynamic", "t", "u")
        shares = group.rebalance()
        return {group.members[one].instance or "": list(share) for one, share in shares.items()}

    assert by_instance("a", "b", "c") == by_instance("z", "y", "x")


def test_the_default_assignors_of_kafka_rebalance_eagerly_and_the_cooperative_one_alone_cooperatively() -> None:
    assert common_protocols(load_assignors(["range", "cooperative-sticky"])) == [RebalanceProtocol.EAGER]
    assert common_protocols([load_assignor("cooperative-sticky")])[0] is RebalanceProtocol.COOPERATIVE


# --- the range assignor and racks (KIP-881) ---


def racked(replicas: dict[str, list[str]], racks: list[str | None], *topics: str) -> Group:
    group = Group("range", {topic: len(rows) for topic, rows in replicas.items()}, replicas)
    for number, rack in enumerate(racks):
        group.join(f"m{number}", *(topics or replicas), rack=rack)
    return group


def test_range_prefers_partitions_in_the_rack_of_the_member() -> None:
    group = racked({"t": ["b", "a", "b", "a"]}, ["a", "b"])
    assert group.rebalance() == {"m0": parts("t-1 t-3"), "m1": parts("t-0 t-2")}


def test_range_balances_each_topic_before_it_matches_racks() -> None:
    group = racked({"t": ["a", "a", "a", "b"], "u": ["a", "a"]}, ["a", "b"])
    assert group.rebalance() == {"m0": parts("t-0 t-1 u-0"), "m1": parts("t-2 t-3 u-1")}


def test_co_partitioned_topics_stay_co_partitioned_in_their_racks() -> None:
    group = racked({"t": ["b", "a"], "u": ["b", "a"]}, ["a", "b"])
    assert group.rebalance() == {"m0": parts("t-1 u-1"), "m1": parts("t-0 u-0")}


def test_co_partitioned_topics_whose_racks_differ_are_assigned_as_without_racks() -> None:
    group = racked({"t": ["b", "a"], "u": ["a", "b"]}, ["a", "b"])
    assert group.rebalance() == {"m0": parts("t-0 u-0"), "m1": parts("t-1 u-1")}


@pytest.mark.parametrize(
    ("replicas", "racks"),
    [
        (["a b", "a b", "a b"], ["b", "a"]),  # every rack has every partition
        (["a", "b", "a"], ["c", "d"]),  # no member is in a rack of a replica
        (["a", "b", "a"], [None, None]),
        (["", "", ""], ["b", "a"]),  # the brokers have no racks
    ],
)
def test_range_ignores_racks_that_do_not_matter(replicas: list[str], racks: list[str | None]) -> None:
    group = racked({"t": replicas}, racks)
    assert group.rebalance() == {"m0": parts("t-0 t-1"), "m1": parts("t-2")}


def test_members_without_a_rack_take_part_with_those_that_have_one() -> None:
    group = racked({"t": ["b", "a", "b"]}, ["a", None, "b"])
    shares = group.rebalance()
    group.check(shares)
    assert group.mismatches(shares) == 0
