"""Which differences between a group and a plan keep the plan from being applied."""

from __future__ import annotations

import pytest

from kgctl.journal.comparison import what_moved
from kgctl.journal.execution import check
from kgctl.journal.making import plan_of
from kgctl.model.plans import DELETION, OFFSETS, REMOVAL, GroupPlan, Move, StoredGroup, StoredMember, StoredOffset

ANN, BOB = StoredMember("ann-1", "ann"), StoredMember("bob-1")
OFFSET = StoredOffset("orders", 0, 10)
MOVE = Move("orders", 0, 10, None)


def group(*members: StoredMember, offsets: tuple[StoredOffset, ...] = (OFFSET,)) -> StoredGroup:
    return StoredGroup("g", "Stable" if members else "Empty", "Classic", members, offsets)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ((ANN,), (ANN, BOB), "1 member (bob-1) joined"),
        ((ANN, BOB), (ANN,), "1 member (bob-1) left"),
        ((ANN,), (BOB,), "1 member (bob-1) joined and 1 member (ann) left"),
        ((ANN,), (ANN,), None),
    ],
)
def test_members_that_joined_or_left_count(
    before: tuple[StoredMember, ...], now: tuple[StoredMember, ...], said: str | None
) -> None:
    plan = GroupPlan("g", REMOVAL, "Stable", "Classic", before, leaving=before)
    expected = None if said is None else f"group 'g' has changed since the plan was made: {said}"
    assert what_moved(plan, group(*now)) == expected


def test_a_deletion_counts_offsets_that_were_committed_since_and_a_reset_does_not() -> None:
    now = group(offsets=(OFFSET, StoredOffset("orders", 1, 7)))
    deletion = GroupPlan("g", DELETION, "Empty", "Classic", moves=(MOVE,))
    assert what_moved(deletion, now) == ("group 'g', orders-1: committed 7 now, not nothing as when the plan was made")
    assert what_moved(GroupPlan("g", OFFSETS, "Empty", "Classic", moves=(MOVE,)), now) is None


def test_force_does_not_apply_a_deletion_to_members() -> None:
    deletion = GroupPlan("g", DELETION, "Empty", "Classic", moves=(MOVE,))
    (checked,) = check(plan_of("delete", "c", 0, [deletion]), {"g": group(ANN)}, force=True)
    assert checked.error is not None
    assert checked.error.message == "group 'g' is Stable: a group that has members cannot be deleted"
