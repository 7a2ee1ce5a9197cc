"""The state machine, the facts about a group, and the members that it waits for."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kgctl.model.groups import SHARE, GroupDescription
from kgctl.tui.widgets.group.progress import names, sentence, short_id
from kgctl.tui.widgets.group.state_machine import StateMachine, facts, path_of, state_of
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


def lines(of: GroupDescription, width: int = 80, **more: float) -> list[str]:
    """The lines of the widget without trailing spaces."""

    async def draw() -> list[str]:
        machine = StateMachine()
        app = Host(machine)
        async with app.run_test(size=(width, 6)) as pilot:
            machine.show(of, more.get("state_s", 3.4), WALL_MS, is_least=bool(more.get("is_least")))
            await pilot.pause()
            return [strip.text.rstrip() for strip in machine.render_lines(machine.region.reset_offset)]

    return asyncio.run(draw())


@pytest.mark.parametrize(
    ("of", "current"),
    [
        (group(), "Stable"),
        (preparing(), "PreparingRebalance"),
        (completing(), "CompletingRebalance"),
        (empty(), "Empty"),
        (absent(), "Dead"),
        (newer("Assigning"), "Assigning"),
        (newer("Reconciling"), "Reconciling"),
        (group("Odd\x1b[31m"), "Odd\\x1b[31m"),
    ],
)
def test_one_state_is_highlighted_and_all_fit_into_80_columns(of: GroupDescription, current: str) -> None:
    first = lines(of)[0]
    assert first.count("\u25cf") == 1
    assert f"\u25cf {current}" in first
    assert len(first) <= 79


def test_a_group_with_an_error_has_no_highlighted_state() -> None:
    first, second, third, _ = lines(failed("TIMED_OUT", "no answer in 10 s"))
    assert "\u25cf" not in first
    assert second.strip() == "The state is not known."
    assert third.strip() == "no answer in 10 s"


def test_states_do_not_move_when_another_one_is_highlighted() -> None:
    here, there = lines(preparing())[0], lines(group())[0]
    assert [here.index(state) for state in ("Empty", "PreparingRebalance", "Stable", "Dead")] == [
        there.index(state) for state in ("Empty", "PreparingRebalance", "Stable", "Dead")
    ]


def test_each_group_type_has_its_own_states() -> None:
    assert path_of(newer()) == ("Empty", "Assigning", "Reconciling", "Stable")
    assert path_of(replace(newer("Stable"), type=SHARE)) == ("Empty", "Stable")
    assert path_of(group("NotReady")) == ("NotReady",)
    assert state_of(absent()) == "Dead"


def test_facts_are_abbreviated_if_they_do_not_fit() -> None:
    assert facts(group(), 3.4, 100, is_least=False) == (
        "for 3.4 s \u00b7 generation 12 \u00b7 leader worker-1 \u00b7 protocol range \u00b7 coordinator 127.0.0.1:9092"
    )
    assert facts(group(), 3.4, 78, is_least=False) == (
        "for 3.4 s \u00b7 generation 12 \u00b7 leader worker-1 \u00b7 range \u00b7 on 127.0.0.1:9092"
    )


def test_an_address_that_does_not_fit_is_left_out() -> None:
    far = group(coordinator="broker-17.kafka.internal.example.org:9092")
    assert facts(far, 3.4, 78, is_least=False) == "for 3.4 s \u00b7 generation 12 \u00b7 leader worker-1 \u00b7 range"


def test_a_silent_member_of_a_stable_group_is_named() -> None:
    quiet = group(members=[member(1), member(2, heartbeat_age_ms=30_000), member(3)])
    assert sentence(quiet, WALL_MS) == "3 members, no heartbeat from worker-2 (30 s of 45 s)"
    assert lines(quiet)[3].strip() == "\u2713 worker-1   ! worker-2 silent   \u2713 worker-3"


def test_unreported_facts_are_dashes_and_observed_durations_are_lower_bounds() -> None:
    assert facts(on_kafka(), 75.0, 100, is_least=True).startswith(
        "for at least 1 min \u00b7 generation - \u00b7 leader - \u00b7 "
    )
    assert facts(on_kafka(), 0.0, 100, is_least=True).startswith("generation - ")
    assert facts(newer(), 75.0, 100, is_least=False).startswith("for 1 min \u00b7 epoch 9 \u00b7 protocol uniform")


def test_the_sentence_counts_joined_members_and_names_missing_ones() -> None:
    assert sentence(preparing(), WALL_MS) == ("1 of 3 members joined, waiting for worker-2, worker-3, for up to 57 s")
    without_time = replace(preparing(), state_since_ms=None)
    assert sentence(without_time, WALL_MS) == "1 of 3 members joined, waiting for worker-2, worker-3"
    late = replace(preparing(), state_since_ms=WALL_MS - 70_000)
    assert sentence(late, WALL_MS).endswith("for up to 0 s")
    joined = group("PreparingRebalance", [member(1, phase="joined")])
    assert sentence(joined, WALL_MS) == "1 of 1 member joined; more members may join, for up to 57 s"


def test_the_sentence_says_that_the_group_waits_for_the_leader() -> None:
    assert sentence(completing(), WALL_MS) == "2 of 3 members synced, waiting for leader worker-1 to assign partitions"
    given = replace(
        completing(), members=(member(1, phase="synced"), member(2, phase="sync awaited"), member(3, phase="synced"))
    )
    assert sentence(given, WALL_MS) == "2 of 3 members synced, waiting for worker-2"


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (group(), "3 members, each with its assignment"),
        (group(members=[member(1)]), "1 member with its assignment"),
        (group(members=[member(1), member(2, phase="sync awaited")]), "1 of 2 members have their assignment, waiting for worker-2"),
        (empty(), "No members: no consumer of this group is running."),
        (group("Dead", []), "The group no longer exists: it has no members and no offsets."),
        (absent(), "Consumer group 'billing' does not exist. It will appear here once it exists."),
        (on_kafka("PreparingRebalance"), "3 members; this cluster does not report their phases"),
        (newer(), "1 of 2 members have their assignment, waiting for worker-2"),
    ],
)  # fmt: skip
def test_the_sentence_of_each_state(of: GroupDescription, text: str) -> None:
    assert sentence(of, WALL_MS) == text


def test_more_than_three_missing_members_are_counted() -> None:
    many = group("PreparingRebalance", [member(n, phase="join awaited") for n in range(1, 8)], state_since_ms=None)
    assert sentence(many, WALL_MS) == ("0 of 7 members joined, waiting for worker-1, worker-2, worker-3 and 4 more")


def test_each_member_has_a_sign_and_its_phase() -> None:
    assert (
        lines(preparing())[3].strip()
        == "\u25cf worker-1 joined   \u25cb worker-2 not rejoined yet   \u25cb worker-3 not rejoined yet"
    )
    assert (
        lines(completing())[3].strip()
        == "\u25d0 worker-1 awaiting sync   \u2713 worker-2 synced   \u2713 worker-3 synced"
    )
    assert lines(group())[3].strip() == "\u2713 worker-1   \u2713 worker-2   \u2713 worker-3"


def test_missing_members_come_first_if_not_all_fit() -> None:
    members = [member(n, phase="join awaited" if n == 30 else "joined") for n in range(1, 31)]
    last = lines(group("PreparingRebalance", members))[3].strip()
    assert last.startswith("\u25cb worker-30 not rejoined yet")
    assert last.endswith("more")
    assert len(last) <= 78
    shown = last.count("worker-")
    assert f"and {30 - shown} more" in last


def test_members_with_the_same_client_id_are_named_by_their_member_ids() -> None:
    twins = [member(1, client_id="app"), member(2, client_id="app"), member(3, group_instance_id="shop-3")]
    assert list(names(twins).values()) == ["worker-1-1f2e3d4c", "worker-2-1f2e3d4c", "shop-3"]
    assert short_id("1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f1") == "1f2e3d4c"
    assert short_id("by-hand") == "by-hand"
    assert names([member(1, client_id="a\x1b[2J[b]")])[member_id(1)] == "a\\x1b[2J[b]"
