"""The loop of states, the progress of a rebalance with its countdowns, facts, and the names of members."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.groups import SHARE, GroupDescription
from kgctl.model.health import Health
from kgctl.model.watched import GroupSnapshot
from kgctl.tui.widgets.group.machine import loop, path_of, state_of
from kgctl.tui.widgets.group.names import name_of, names, short_id
from kgctl.tui.widgets.group.progress import progress
from kgctl.tui.widgets.group.state_panel import StateNow, StatePanel
from kgctl.watch.group import GroupWatch
from kgctl.watch.visits import Visits
from tests.kgctl.tui.group_snapshots import (
    WALL_MS,
    absent,
    completing,
    empty,
    failed,
    group,
    member,
    member_id,
    newer,
    on_kafka,
    preparing,
)
from tests.kgctl.tui.panes import Host


def states(of: GroupDescription, spent: Mapping[str, float] | None = None, came_from: str | None = None) -> list[str]:
    return [line.plain.rstrip() for line in loop(of, Visits(spent or {}, came_from), 56)]


def steps(of: GroupDescription, width: int = 76, passed_s: float = 0.0) -> list[str]:
    return [line.plain for line in progress(of, WALL_MS + int(passed_s * 1000), passed_s, width) if line]


@pytest.mark.parametrize(
    ("of", "current"),
    [
        (group(), "Stable"),
        (preparing(), "Preparing"),
        (completing(), "Completing"),
        (empty(), "Empty"),
        (absent(), "Dead"),
        (newer("Assigning"), "Assigning"),
        (newer("Reconciling"), "Reconciling"),
        (group("Odd\x1b[31m"), "Odd\\x1b[31m"),
    ],
)
def test_one_state_is_lit_and_all_fit_beside_the_chart_on_80_columns(of: GroupDescription, current: str) -> None:
    first, below = states(of)
    assert first.count("\u25cf") == 1
    assert f"\u25cf {current}" in first
    assert max(len(first), len(below)) <= 54


def test_the_times_stand_below_their_states_on_the_way_back_to_a_rebalance() -> None:
    spent = {"Empty": 720.0, "PreparingRebalance": 1.8, "CompletingRebalance": 0.04, "Stable": 1200.0}
    first, below = states(group(), spent, "CompletingRebalance")
    assert (
        first == "\u25cb Empty \u2500\u25b6 \u25cb Preparing \u2500\u25b6 \u25cb Completing \u2550\u25b6 \u25cf Stable"
    )
    for state, time in (("Empty", "12m"), ("Preparing", "1.8s"), ("Completing", "40ms"), ("Stable", "20m")):
        assert below.index(time) == first.index(state)
    assert below[first.index("Preparing") - 2] == "\u25b4"
    assert below.endswith("\u256f")


def test_the_last_transition_is_lit_without_colour() -> None:
    assert "\u2550" in states(preparing(), {}, "Stable")[1]
    assert "\u2550" not in "".join(states(preparing()))
    assert states(completing(), {}, "PreparingRebalance")[0].count("\u2550\u25b6") == 1
    assert "\u25cf Empty \u25c0\u2550 \u25cb Preparing" in states(empty(), {}, "PreparingRebalance")[0]


def test_states_do_not_move_when_another_one_is_lit() -> None:
    here, there = states(preparing())[0], states(group())[0]
    assert [here.index(state) for state in ("Empty", "Preparing", "Stable")] == [
        there.index(state) for state in ("Empty", "Preparing", "Stable")
    ]


def test_each_group_type_has_its_own_states() -> None:
    assert path_of(newer()) == ("Empty", "Assigning", "Reconciling", "Stable")
    assert path_of(replace(newer("Stable"), type=SHARE)) == ("Empty", "Stable")
    assert path_of(group("NotReady")) == ("NotReady",)
    assert path_of(absent()) == (state_of(absent()),) == ("Dead",)
    assert states(replace(newer("Stable"), type=SHARE), {"Stable": 3.0})[1].strip() == "3s"
    assert "\u25cf NotReady" in states(replace(newer("NotReady"), type="Streams"))[0]


# ---- progress


def test_a_rebalance_is_a_bar_with_whom_it_waits_for_and_running_countdowns() -> None:
    bar, clocks = steps(preparing())
    assert bar == f"joined {'█' * 8}{'░' * 16} 1/3  waits for worker-2, worker-3"
    assert clocks == "rebalance timeout in 57s \u00b7 worker-3 silent, evicted in 14s"
    assert steps(preparing(), passed_s=5)[1] == "rebalance timeout in 52s \u00b7 worker-3 silent, evicted in 9s"
    late = replace(preparing(), state_since_ms=WALL_MS - 70_000)
    assert steps(late)[1].startswith("rebalance timeout in 0s")
    assert steps(replace(preparing(), state_since_ms=None))[1] == "worker-3 silent, evicted in 14s"


def test_a_bar_of_110_members_names_as_many_as_fit() -> None:
    members = [member(n, phase="joined" if n <= 50 else "join awaited", heartbeat_age_ms=900) for n in range(1, 111)]
    many = group("PreparingRebalance", members, state_since_ms=None)
    bar = steps(many)[0]
    assert "50/110  waits for worker-51, worker-52, worker-53 and 57 more" in bar
    assert bar.startswith("joined \u2588")
    assert max(map(len, steps(many, 60))) <= 60
    assert "worker-51 and 59 more" in steps(many, 60)[0]
    assert "waits" not in steps(many, 30)[0]


def test_the_second_phase_waits_for_the_leader_then_for_the_others() -> None:
    assert steps(completing())[0].endswith(" 2/3  leader worker-1 assigns partitions")
    given = replace(
        completing(), members=(member(1, phase="synced"), member(2, phase="sync awaited"), member(3, phase="synced"))
    )
    assert steps(given)[0].endswith("2/3  waits for worker-2")
    assert steps(newer())[0].startswith("reconciled ")
    assert steps(newer())[0].endswith(" 0/2  waits for worker-2")
    joined = group("PreparingRebalance", [member(1, phase="joined")], state_since_ms=None)
    assert steps(joined) == [f"joined {'█' * 24} 1/1  more members may join"]


def test_silent_members_of_a_stable_group_are_named_with_the_time_until_they_are_evicted() -> None:
    quiet = group(members=[member(1), *(member(n, heartbeat_age_ms=10_000 * n) for n in (3, 4))])
    assert steps(quiet) == ["worker-4 silent, evicted in 5s \u00b7 worker-3 silent, evicted in 15s"]
    assert steps(quiet, passed_s=6) == ["worker-4 silent, evicted in 0s \u00b7 worker-3 silent, evicted in 9s"]


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (group(), "3 members, each with its assignment"),
        (group(members=[member(1)]), "1 member, with its assignment"),
        (group(members=[member(1), member(2, phase="sync awaited")]), "1 of 2 members have their assignment, waits for worker-2"),
        (empty(), "No members: no consumer of this group is running."),
        (group("Dead", []), "The group no longer exists: it has no members and no offsets."),
        (absent(), "Consumer group 'billing' does not exist. It will appear here once it exists."),
        (on_kafka("PreparingRebalance"), "3 members; this cluster does not report their phases"),
        (failed("TIMED_OUT", "no answer in 10 s"), "no answer in 10 s"),
    ],
)  # fmt: skip
def test_the_sentence_of_each_state(of: GroupDescription, text: str) -> None:
    assert steps(of) == [text]


# ---- the panel


def panel(
    of: GroupDescription,
    size: tuple[int, int] = (80, 8),
    state_s: float = 3.4,
    events: Sequence[ClusterEvent] = (),
    **more: bool,
) -> tuple[str, str]:
    """Its title and its text."""

    async def draw() -> tuple[str, str]:
        shown = StatePanel()
        async with Host(shown).run_test(size=size) as pilot:
            summary = GroupWatch().add(GroupSnapshot(100.0, WALL_MS, of)).summary
            is_least = bool(more.get("is_least"))
            shown.show(StateNow(of, summary, state_s, is_least, WALL_MS, 0.0, Visits({}), events))
            await pilot.pause()
            return shown.title_text, shown.lines.text(size[0] - 4).plain

    return asyncio.run(draw())


def test_the_title_has_state_time_generation_and_protocol() -> None:
    assert panel(group())[0] == "State: Stable 3.4s \u00b7 generation 12 \u00b7 range"
    assert panel(on_kafka(), state_s=75.0, is_least=True)[0].startswith(
        "State: Stable for at least 1m \u00b7 generation -"
    )
    assert panel(newer(), state_s=75.0)[0] == "State: Reconciling 1m \u00b7 epoch 9 \u00b7 uniform"
    assert panel(absent())[0] == "State: Dead"


def test_the_reason_of_the_verdict_comes_first_in_a_calm_group_and_facts_that_do_not_fit_are_left_out() -> None:
    lines = panel(group())[1].splitlines()
    assert lines[2].startswith("\u25cc judging")
    assert lines[3] == "3 members, each with its assignment"
    assert lines[4] == "leader worker-1 \u00b7 coordinator 127.0.0.1:9092 \u00b7 6 partitions of 1 topic"
    far = group(coordinator="broker-17.kafka.internal.example.org:9092")
    assert panel(far, (50, 8))[1].splitlines()[-1] == "leader worker-1"
    assert len(panel(preparing(), (80, 5))[1].splitlines()) == 3
    assert Health.REBALANCING.value.lower() not in panel(preparing())[1]


def test_events_of_the_group_take_the_lines_that_are_left() -> None:
    events = [
        ClusterEvent(WALL_MS - 1000 * number, EventKind.REBALANCE, "billing", f"rebalance {number}")
        for number in range(9)
    ]
    for height, shown in ((8, 0), (9, 0), (10, 1), (15, 6)):
        text = panel(group(), (80, height), events=events)[1]
        assert text.count("rebalance ") == shown, height
    assert "UTC       EVENTS" in text
    assert text.splitlines()[-6].endswith("\u21bb rebalance 0")


# ---- names


def test_members_with_the_same_client_id_are_named_by_their_member_ids() -> None:
    twins = [member(1, client_id="app"), member(2, client_id="app"), member(3, group_instance_id="shop-3")]
    assert list(names(twins).values()) == ["worker-1-1f2e3d4c", "worker-2-1f2e3d4c", "shop-3"]
    assert short_id("1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f1") == "1f2e3d4c"
    assert short_id("by-hand") == "by-hand"
    assert names([member(1, client_id="a\x1b[2J[b]")])[member_id(1)] == "a\\x1b[2J[b]"


def test_a_former_member_has_the_name_of_its_client() -> None:
    assert name_of(member_id(7), {}) == "worker-7"
    assert name_of(member_id(7), {member_id(7): "shop-7"}) == "shop-7"
    assert name_of("1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f1", {}) == "1f2e3d4c"
    assert name_of("a\x1b[2J", {}) == "a\\x1b[2J"
