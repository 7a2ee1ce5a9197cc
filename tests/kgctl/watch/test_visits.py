"""How long a group was in each state the last time, and where it came from."""

from __future__ import annotations

from dataclasses import replace

from kgctl.model.watched import GroupSnapshot
from kgctl.tui.widgets.group.machine import path_of
from kgctl.watch.timeline import Timeline
from kgctl.watch.visits import Visits, visits
from tests.kgctl.tui.group_snapshots import (
    completing,
    empty,
    group,
    history,
    newer,
    preparing,
    snapshot,
    stable,
    started,
)


def of(taken: GroupSnapshot, state_s: float | None = 3.0) -> Visits:
    rows = Timeline().add(taken, whole_history=True)
    return visits(path_of(taken.group), taken.group, state_s, rows)


def test_a_stable_group_came_from_the_second_phase() -> None:
    found = of(snapshot(events=history()))
    assert found.came_from == "CompletingRebalance"
    assert found.spent_s == {"PreparingRebalance": 6.2, "CompletingRebalance": 1.4, "Stable": 3.0}


def test_a_rebalance_leads_back_from_stable_after_the_time_between_two_rebalances() -> None:
    found = of(snapshot(preparing(), [*history(), started(1.4, 12, "member joined")]))
    assert found.came_from == "Stable"
    assert (found.spent_s["Stable"], found.spent_s["PreparingRebalance"]) == (2.0, 3.0)
    assert of(snapshot(completing(), [*history(), started(1.4, 12, "member joined")])).came_from == "PreparingRebalance"


def test_a_superseded_rebalance_leads_back_from_the_second_phase() -> None:
    events = [*history(), started(3.0, 12, "member joined"), started(1.0, 13, "member joined")]
    assert of(snapshot(preparing(), events)).came_from == "CompletingRebalance"


def test_a_group_that_its_members_left_is_empty_after_the_first_phase() -> None:
    gone = replace(stable(2.0, 13, "member left", 5, 0, left=[1, 2, 3]), event="empty", complete_ms=None)
    found = of(snapshot(empty(), [*history(), started(2.1, 12, "member left"), gone]))
    assert found.came_from == "PreparingRebalance"
    assert "CompletingRebalance" not in found.spent_s
    again = [*history(), started(2.1, 12, "member left"), gone, started(0.5, 13, "member joined")]
    found = of(snapshot(preparing(), again))
    assert (found.came_from, found.spent_s["Empty"]) == ("Empty", 1.5)


def test_nothing_is_known_without_rebalances() -> None:
    assert of(snapshot(group(), None)) == Visits({"Stable": 3.0})
    assert of(snapshot(newer(), None), None) == Visits({}, "Assigning")
