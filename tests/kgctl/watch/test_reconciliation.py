"""Members of consumer groups (KIP-848) on the way to their targets: phases, who holds what others wait for, verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from broker.light_dataclasses import replace
from kgctl.model.groups import CONSUMER, GroupDescription, MemberRow, by_topic
from kgctl.model.health import Health
from kgctl.model.reconciliation import reconciled
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.health import health
from kgctl.watch.limits import LIMITS
from kgctl.watch.silence import rebalancing_briefly, reconciling_members
from kgctl.watch.tracker import GroupTracker
from tests.kgctl.watch.snapshots import group, member, partition

EPOCH = 5


def one(name: str, owned: Iterable[int], target: Iterable[int], epoch: int = EPOCH, **fields: Any) -> MemberRow:
    """A member with a client id of its own; its newest target is of EPOCH."""
    assigned = by_topic(("orders", number) for number in target)
    row = member(name, owned, current_epoch=epoch, target_epoch=EPOCH, target_assignment=assigned)
    return replace(row, **{"client_id": name, **fields})


def consumers(*members: MemberRow, state: str = "Reconciling", **fields: Any) -> GroupDescription:
    fields = {"type": CONSUMER, "group_epoch": EPOCH, "target_assignment_epoch": EPOCH, **fields}
    return reconciled(group(state, members, **fields))


def phases(described: GroupDescription) -> dict[str | None, tuple[str | None, str, str]]:
    return {
        row.consumer_id: (
            row.phase,
            ",".join(str(number) for entry in row.revoking or () for number in entry.partitions),
            ",".join(str(number) for entry in row.waiting_for or () for number in entry.partitions),
        )
        for row in described.members
    }


def test_epochs_and_assignments_give_each_member_its_phase() -> None:
    found = consumers(
        one("told", [0, 1], [0], epoch=4),
        one("behind", [2], [2], epoch=4),
        one("also-behind", [3], [3], epoch=3),
        one("waits", [4], [4, 5, 1]),
        one("done", [6], [6]),
        one("left", [7], [7], epoch=-2, group_instance_id="i-1"),
    )
    assert phases(found) == {
        "told": ("revoking", "1", ""),
        "behind": ("reconciling", "", ""),
        "also-behind": ("reconciling", "", ""),
        "waits": ("waiting", "", "1,5"),
        "done": ("stable", "", ""),
        "left": ("away", "", ""),
    }


def test_the_only_member_behind_has_what_others_wait_for() -> None:
    """The answer of the coordinator omits it: partitions 1 and 5 are in no assignment."""
    found = consumers(one("a", [0], [0], epoch=4), one("b", [], [1]), one("c", [2], [2, 5]))
    assert phases(found)["a"] == ("revoking", "1,5", "")
    assert reconciling_members(found) == [
        "a has not given up orders:1,5",
        "b waits for orders:1",
        "c waits for orders:5",
    ]
    assert rebalancing_briefly(found) == "0/3 reconciled, a revokes 2"


def test_a_classic_group_has_no_such_phases() -> None:
    described = group("PreparingRebalance", [member("a", [0])])
    assert reconciled(described) is described


def test_earlier_snapshots_show_which_of_several_members_has_a_partition() -> None:
    tracker = GroupTracker()
    tracker.add(0, 0, consumers(one("a", [0, 1], [0, 1], epoch=4), one("b", [2, 3], [2, 3], epoch=4)))
    later = consumers(
        one("a", [0], [0], epoch=4), one("b", [2], [2], epoch=4), one("c", [], [1, 3], group_instance_id="c")
    )
    assert phases(later)["a"][0] == "reconciling"
    tracker.add(1, 1000, later)
    assert tracker.group is not None
    assert phases(tracker.group) == {
        "a": ("revoking", "1", ""),
        "b": ("revoking", "3", ""),
        "c": ("waiting", "", "1,3"),
    }
    # The next snapshot still knows it; a member that confirms is done.
    tracker.add(2, 2000, consumers(one("a", [0], [0], epoch=4), one("b", [2], [2]), one("c", [3], [1, 3])))
    assert phases(tracker.group)["a"] == ("revoking", "1", "")
    assert phases(tracker.group)["b"] == ("stable", "", "")


def test_a_stalled_partition_of_a_reconciling_group_is_stalled() -> None:
    """The other members read on, so a rebalance under way excuses no records that wait."""
    members = one("a", [0], [0], epoch=4), one("b", [], [1])
    rows = [partition(0, 10, 10, "a"), partition(1, 5, 9, None)]
    calm = consumers(*members, partitions=rows, subscribed=frozenset({"orders"}))
    tracker = GroupTracker()
    tracker.add(0, 0, calm)
    found = health(tracker)
    assert (found.health, found.brief) == (Health.REBALANCING, "0/2 reconciled, a revokes 1")
    assert found.reason == "Reconciling: 0 of 2 members reconciled; a has not given up orders:1; b waits for orders:1"
    tracker.add(LIMITS.stalled_s, 0, calm)
    found = health(tracker)
    assert (found.health, found.reason.split(":")[0]) == (Health.STALLED, "orders 1 (not given up by a)")


def test_members_with_the_same_client_id_are_told_apart() -> None:
    same = [one(name, [], [number], client_id="app") for number, name in enumerate(("x", "y", "z", "w"))]
    assert reconciling_members(consumers(*same)) == [
        "app (x) waits for orders:0",
        "app (y) waits for orders:1",
        "app (z) waits for orders:2",
        "1 other member likewise",
    ]


def test_many_partitions_are_counted() -> None:
    found = consumers(one("a", [], range(30)))
    assert reconciling_members(found) == ["a waits for 30 partitions"]
    assert found.members[0].waiting_for == by_topic(TopicPartition("orders", number) for number in range(30))
