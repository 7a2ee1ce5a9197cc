"""The states of a group, what is told about it, and who is awaited."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kgctl.model.groups import SHARE, GroupDescription
from kgctl.tui.widgets.standing import names, sentence, short_id
from kgctl.tui.widgets.state_machine import StateMachine, facts, path_of, state_of
from tests.kgctl.tui.group_looks import (
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
    """What the widget draws, line by line, without the spaces at the ends."""

    async def draw() -> list[str]:
        machine = StateMachine()
        app = Host(machine)
        async with app.run_test(size=(width, 6)) as pilot:
            machine.show(of, more.get("state_s", 3.4), WALL_MS, is_least=bool(more.get("is_least")))
            await pilot.pause()
            return [strip.text.rstrip() for strip in machine.render_lines(machine.region.reset_offset)]

    return asyncio.run(draw())


@pytest.mark.parametrize(
    ("of", "lit"),
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
def test_one_state_is_lit_by_a_sign_and_all_fit_into_80_columns(of: GroupDescription, lit: str) -> None:
    first = lines(of)[0]
    assert first.count("\u25cf") == 1
    assert f"\u25cf {lit}" in first
    assert len(first) <= 79


def test_no_state_is_lit_of_a_group_that_could_not_be_asked() -> None:
    first, second, third, _ = lines(failed("TIMED_OUT", "no answer in 10 s"))
    assert "\u25cf" not in first
    assert second.strip() == "Its state is not known."
    assert third.strip() == "no answer in 10 s"


def test_states_do_not_move_when_another_is_lit() -> None:
    here, there = lines(preparing())[0], lines(group())[0]
    assert [here.index(state) for state in ("Empty", "PreparingRebalance", "Stable", "Dead")] == [
        there.index(state) for state in ("Empty", "PreparingRebalance", "Stable", "Dead")
    ]


def test_newer_protocols_have_states_of_their_own() -> None:
    assert path_of(newer()) == ("Empty", "Assigning", "Reconciling", "Stable")
    assert path_of(replace(newer("Stable"), type=SHARE)) == ("Empty", "Stable")
    assert path_of(group("NotReady")) == ("NotReady",)
    assert state_of(absent()) == "Dead"


def test_the_facts_have_fewer_words_where_they_do_not_fit() -> None:
    assert facts(group(), 3.4, 100, is_least=False) == (
        "for 3.4 s \u00b7 generation 12 \u00b7 leader worker-1 \u00b7 protocol range \u00b7 coordinator 127.0.0.1:9092"
    )
    assert facts(group(), 3.4, 78, is_least=False) == (
        "for 3.4 s \u00b7 generation 12 \u00b7 leader worker-1 \u00b7 range \u00b7 on 127.0.0.1:9092"
    )


def test_an_address_that_does_not_fit_is_left_out_and_not_cut() -> None:
    far = group(coordinator="broker-17.kafka.internal.example.org:9092")
    assert facts(far, 3.4, 78, is_least=False) == "for 3.4 s \u00b7 generation 12 \u00b7 leader worker-1 \u00b7 range"


def test_a_member_that_is_not_heard_of_is_named_although_the_group_is_stable() -> None:
    quiet = group(members=[member(1), member(2, heartbeat_age_ms=30_000), member(3)])
    assert sentence(quiet, WALL_MS) == "3 members, not heard of: worker-2 for 30 s of 45 s"
    assert lines(quiet)[3].strip() == "\u2713 worker-1   ! worker-2 silent   \u2713 worker-3"


def test_what_a_cluster_does_not_tell_is_a_dash_and_a_time_is_at_least_what_was_seen() -> None:
    assert facts(on_kafka(), 75.0, 100, is_least=True).startswith(
        "for at least 1 min \u00b7 generation - \u00b7 leader - \u00b7 "
    )
    assert facts(on_kafka(), 0.0, 100, is_least=True).startswith("generation - ")
    assert facts(newer(), 75.0, 100, is_least=False).startswith("for 1 min \u00b7 epoch 9 \u00b7 protocol uniform")


def test_a_sentence_says_who_has_joined_and_who_is_awaited_for_how_long() -> None:
    assert sentence(preparing(), WALL_MS) == ("1 of 3 members joined, waiting for worker-2, worker-3, up to 57 s more")
    untold = replace(preparing(), state_since_ms=None)
    assert sentence(untold, WALL_MS) == "1 of 3 members joined, waiting for worker-2, worker-3"
    late = replace(preparing(), state_since_ms=WALL_MS - 70_000)
    assert sentence(late, WALL_MS).endswith("up to 0 s more")
    joined = group("PreparingRebalance", [member(1, phase="joined")])
    assert sentence(joined, WALL_MS) == "1 of 1 member joined; others may still come, up to 57 s more"


def test_a_sentence_says_that_the_leader_owes_the_assignment() -> None:
    assert sentence(completing(), WALL_MS) == "2 of 3 members synced, waiting for the assignment by the leader worker-1"
    given = replace(
        completing(), members=(member(1, phase="synced"), member(2, phase="sync awaited"), member(3, phase="synced"))
    )
    assert sentence(given, WALL_MS) == "2 of 3 members synced, waiting for worker-2"


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (group(), "3 members, each has its assignment"),
        (group(members=[member(1)]), "1 member, which has its assignment"),
        (group(members=[member(1), member(2, phase="sync awaited")]), "1 of 2 members have their assignment, waiting for worker-2"),
        (empty(), "No members: nobody reads for this group."),
        (group("Dead", []), "The group is gone: it has no members and no offsets."),
        (absent(), "Consumer group 'billing' does not exist. This screen waits for it."),
        (on_kafka("PreparingRebalance"), "3 members; where each stands in a rebalance this cluster does not tell"),
        (newer(), "1 of 2 members have their assignment, waiting for worker-2"),
    ],
)  # fmt: skip
def test_a_sentence_for_every_state(of: GroupDescription, said: str) -> None:
    assert sentence(of, WALL_MS) == said


def test_more_than_three_who_are_awaited_are_counted() -> None:
    many = group("PreparingRebalance", [member(n, phase="join awaited") for n in range(1, 8)], state_since_ms=None)
    assert sentence(many, WALL_MS) == ("0 of 7 members joined, waiting for worker-1, worker-2, worker-3 and 4 more")


def test_each_member_stands_in_the_line_with_a_sign_and_a_word() -> None:
    assert lines(preparing())[3].strip() == "\u25cf worker-1 joined   \u25cb worker-2 missing   \u25cb worker-3 missing"
    assert (
        lines(completing())[3].strip()
        == "\u25d0 worker-1 awaiting sync   \u2713 worker-2 synced   \u2713 worker-3 synced"
    )
    assert lines(group())[3].strip() == "\u2713 worker-1   \u2713 worker-2   \u2713 worker-3"


def test_of_many_members_those_who_are_awaited_are_seen_first() -> None:
    members = [member(n, phase="join awaited" if n == 30 else "joined") for n in range(1, 31)]
    last = lines(group("PreparingRebalance", members))[3].strip()
    assert last.startswith("\u25cb worker-30 missing")
    assert last.endswith("more")
    assert len(last) <= 78
    shown = last.count("worker-")
    assert f"and {30 - shown} more" in last


def test_members_with_the_same_client_id_are_called_by_their_ids() -> None:
    twins = [member(1, client_id="app"), member(2, client_id="app"), member(3, group_instance_id="shop-3")]
    assert list(names(twins).values()) == ["worker-1-1f2e3d4c", "worker-2-1f2e3d4c", "shop-3"]
    assert short_id("1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f1") == "1f2e3d4c"
    assert short_id("by-hand") == "by-hand"
    assert names([member(1, client_id="a\x1b[2J[b]")])[member_id(1)] == "a\\x1b[2J[b]"
