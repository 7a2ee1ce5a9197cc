"""The timeline of a cluster without histories: what snapshots show."""

from __future__ import annotations

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription, TopicPartitions
from kgctl.model.watched import Rebalance
from kgctl.watch.rebalances import REBALANCES
from kgctl.watch.timeline import Timeline
from tests.kgctl.watch.snapshots import group, group_snapshot, member

ONE = [member("c-1", [0, 1])]
TWO = [member("c-1", [0]), member("c-2", [1])]
GONE = GroupDescription("g", error=RowError("NOT_FOUND", "does not exist"))


def observed(*groups: GroupDescription) -> tuple[Timeline, tuple[Rebalance, ...]]:
    """The timeline after snapshots of these groups, 2 s apart, from 0 on."""
    timeline = Timeline()
    rows = timeline.rows
    for place, each in enumerate(groups):
        rows = timeline.add(group_snapshot(place * 2, each))
    return timeline, rows


def kinds(rows: tuple[Rebalance, ...]) -> list[tuple[int, int | None, int | None, int | None, str]]:
    return [(row.started_ms, row.ended_ms, row.prepare_ms, row.complete_ms, row.outcome) for row in rows]


def test_a_group_that_does_not_change_has_no_rebalances() -> None:
    assert observed(group(members=ONE), group(members=ONE))[1] == ()


def test_an_observed_rebalance_has_the_durations_of_its_phases_and_no_cause() -> None:
    timeline, rows = observed(
        group(members=ONE),
        group("PreparingRebalance", ONE),
        group("PreparingRebalance", TWO),
        group("CompletingRebalance", TWO),
        group(members=TWO),
    )
    assert kinds(rows) == [(2_000, 8_000, 4_000, 2_000, "stable")]
    (row,) = rows
    assert (row.is_observed, row.cause, row.reason, row.generation) == (True, None, "observed from outside", None)
    assert (row.joined, row.joined_count, row.left, row.members, row.partitions_moved) == (("c-2",), 1, (), 2, 1)
    assert row.assignment == {"c-1": (TopicPartitions("orders", (0,)),), "c-2": (TopicPartitions("orders", (1,)),)}
    assert timeline.assignment_before(row) == {"c-1": (TopicPartitions("orders", (0, 1)),)}
    assert not timeline.has_history


def test_a_rebalance_under_way_shows_the_members_that_joined_and_left_so_far() -> None:
    _, rows = observed(group(members=TWO), group("PreparingRebalance", [member("c-2")]))
    assert kinds(rows) == [(2_000, None, None, None, "under way")]
    assert (rows[0].left, rows[0].left_count) == (("c-1",), 1)
    _, rows = observed(group(members=TWO), group("PreparingRebalance"), group("CompletingRebalance"))
    assert kinds(rows) == [(2_000, None, 2_000, None, "under way")]


def test_a_rebalance_under_way_at_the_first_snapshot_has_no_known_first_phase() -> None:
    timeline, rows = observed(group("CompletingRebalance", TWO), group(members=TWO))
    assert kinds(rows) == [(0, 2_000, None, 2_000, "stable")]
    assert (rows[0].joined, rows[0].partitions_moved) == ((), None)
    assert timeline.assignment_before(rows[0]) is None


def test_a_superseded_rebalance_is_a_separate_row() -> None:
    _, rows = observed(
        group(members=ONE),
        group("PreparingRebalance", TWO),
        group("CompletingRebalance", TWO),
        group("PreparingRebalance", ONE),
        group(members=ONE),
    )
    assert kinds(rows) == [(2_000, 6_000, 2_000, 2_000, "superseded"), (6_000, 8_000, 2_000, None, "stable")]
    assert rows[1].partitions_moved == 0


def test_a_rebalance_between_two_snapshots_shows_by_what_it_changed() -> None:
    changes = {
        "members": (group(members=ONE), group(members=TWO), "stable", ("c-2",), ()),
        "emptied": (group(members=ONE), group("Empty", ()), "empty", (), ("c-1",)),
        "filled": (group("Empty", ()), group(members=ONE), "stable", ("c-1",), ()),
        "epoch": (group(type="Consumer", group_epoch=1), group(type="Consumer", group_epoch=2), "stable", (), ()),
        "owners": (group(members=ONE), group(members=[member("c-1", [0, 1, 2])]), "stable", (), ()),
    }
    for name, (before, after, outcome, joined, left) in changes.items():
        _, rows = observed(before, before, after, after)
        assert kinds(rows) == [(4_000, 4_000, None, None, outcome)], name
        assert (rows[0].joined, rows[0].left) == (joined, left), name


def test_the_generation_of_a_kip_848_group_is_its_epoch() -> None:
    _, rows = observed(group(type="Consumer", group_epoch=1), group(type="Consumer", group_epoch=2))
    assert rows[0].generation == 2


def test_a_deleted_and_recreated_group_has_a_row_for_each() -> None:
    _, rows = observed(group(members=ONE), GONE, GONE, group(members=TWO))
    assert [(row.outcome, row.joined, row.left) for row in rows] == [
        ("deleted", (), ("c-1",)),
        ("stable", ("c-1", "c-2"), ()),
    ]
    _, rows = observed(group("PreparingRebalance", ONE), GONE)
    assert [row.outcome for row in rows] == ["deleted"]


def test_a_failed_snapshot_adds_no_row() -> None:
    failed = GroupDescription("g", error=RowError("UNREACHABLE", "no answer"))
    _, rows = observed(failed, group(members=ONE), failed, group(members=ONE))
    assert rows == ()


def test_a_snapshot_that_is_not_newer_adds_no_row() -> None:
    timeline, _ = observed(group(members=ONE), group(members=ONE))
    for at_s in (2, 1):
        assert timeline.add(group_snapshot(at_s, group(members=TWO))) == ()


def test_a_history_replaces_observed_rebalances() -> None:
    timeline, rows = observed(group(members=ONE), group(members=TWO))
    assert len(rows) == 1
    assert timeline.add(group_snapshot(9, group(members=TWO), ())) == ()


def test_only_the_newest_rebalances_are_kept() -> None:
    _, rows = observed(*[group(members=[ONE, TWO][place % 2]) for place in range(REBALANCES + 6)])
    assert len(rows) == REBALANCES
    assert rows[-1].ended_ms == (REBALANCES + 5) * 2_000
