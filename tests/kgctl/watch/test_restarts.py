"""A restart of the broker that lasts longer than the sessions: one event with the members that came back."""

from __future__ import annotations

import pytest

from kgctl.model.groups import TopicPartitions
from kgctl.model.history import GroupEventRow
from kgctl.watch.restarts import RESTARTED, with_restart
from kgctl.watch.timeline import Timeline
from tests.kgctl.watch.snapshots import event, group, group_snapshot

START = 50_000
OLD, NEW = (f"-{digit * 8}-1111-1111-1111-111111111111" for digit in "ab")


def owning(ids: list[str], **owned: tuple[int, ...]) -> dict[str, tuple[TopicPartitions, ...]]:
    return {one: (TopicPartitions("orders", owned[one.split("-")[0]]),) for one in ids}


def course(*, causes: str = "session timed out", at_ms: int = START + 6_000) -> list[GroupEventRow]:
    """a and b read six partitions; after the restart a, b and the new c join under new ids."""
    old, new = [f"a{OLD}", f"b{OLD}"], [f"a{NEW}", f"b{NEW}", f"c{NEW}"]
    return [
        event("stable", 10_000, 3, cause="member joined", assignment=owning(old, a=(0, 1, 2), b=(3, 4, 5))),
        event("rebalance_started", at_ms, 3, cause="member joined"),
        event(
            "stable", at_ms + 500, 4, cause="member joined", members=3, joined=tuple(new), left=tuple(old),
            left_causes=(causes, causes), partitions_moved=6, assignment=owning(new, a=(0, 1), b=(3, 4, 5), c=(2,)),
        ),
    ]  # fmt: skip


def test_the_timeline_shows_the_restart_and_counts_against_the_assignment_before_it() -> None:
    timeline = Timeline()
    snapshot = group_snapshot(100, group(broker_started_ms=START), course())
    rows = timeline.add(snapshot, whole_history=True)
    assert [row.cause for row in rows] == ["member joined", RESTARTED]
    restart = rows[1]
    assert (restart.joined, restart.joined_count, restart.left, restart.left_count) == ((f"c{NEW}",), 1, (), 0)
    assert (restart.partitions_moved, restart.reason) == (1, "2 of 2 members came back under new ids")
    before = timeline.assignment_before(restart)
    assert before is not None
    assert before.keys() == {f"a{NEW}", f"b{NEW}"}


def test_the_history_shows_it_as_well() -> None:
    rows = with_restart([row for row in course() if row.event == "stable"], START)
    assert [(row.cause, row.partitions_moved) for row in rows] == [("member joined", None), (RESTARTED, 1)]


@pytest.mark.parametrize(
    "events", [course(causes="member left"), course(at_ms=START - 20_000), course(at_ms=START + 200_000)]
)
def test_other_rebalances_keep_their_cause(events: list[GroupEventRow]) -> None:
    rows = Timeline().add(group_snapshot(300, group(broker_started_ms=START), events), whole_history=True)
    assert {row.cause for row in rows} == {"member joined"}
