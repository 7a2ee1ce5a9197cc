"""Rebalances as bars to scale, newest first, and the details of the selected one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from textual.pilot import Pilot

from kgctl.model.groups import TopicPartitions
from kgctl.model.watched import Outcome, Rebalance
from kgctl.tui.widgets.group.overview import OverviewPane
from kgctl.tui.widgets.group.timeline import Bar, bar_text
from tests.kgctl.tui.group_snapshots import WALL_MS, member_id
from tests.kgctl.tui.panes import Host

DONE = Rebalance(
    started_ms=WALL_MS - 10_000,
    ended_ms=WALL_MS - 6_000,
    generation=4,
    cause="session timed out",
    reason=None,
    prepare_ms=3_000,
    complete_ms=1_000,
    members=2,
    joined=(),
    joined_count=0,
    left=(member_id(3),),
    left_count=1,
    left_causes=("session timed out",),
    partitions_moved=2,
    outcome=Outcome.STABLE,
    assignment={member_id(1): (TopicPartitions("orders", (0, 1)),), member_id(2): ()},
)
OPEN = replace(
    DONE, started_ms=WALL_MS - 2_000, ended_ms=None, generation=None, cause="member joined", prepare_ms=None,
    complete_ms=None, left=(), left_count=0, left_causes=(), partitions_moved=None, outcome=Outcome.UNDER_WAY, assignment=None,
)  # fmt: skip
ENDED = replace(OPEN, ended_ms=WALL_MS, generation=5, prepare_ms=1_990, complete_ms=10, outcome=Outcome.STABLE)


def on_a_pane(play: Callable[[OverviewPane, Pilot[None]], Awaitable[None]], size: tuple[int, int] = (80, 24)) -> None:
    async def run() -> None:
        pane = OverviewPane()
        async with Host(pane).run_test(size=size) as pilot:
            await play(pane, pilot)

    asyncio.run(run())


def older(number: int) -> Rebalance:
    return replace(DONE, started_ms=DONE.started_ms - 60_000 * number, ended_ms=None, outcome=Outcome.INTERRUPTED)


def bar(of: Rebalance, took_ms: int) -> Bar:
    return Bar("key", of, took_ms)


def test_a_bar_has_its_two_phases_to_scale() -> None:
    assert bar_text(bar(DONE, 4_000), 8_000, 16) == "\u2591" * 6 + "\u2588" * 2
    assert bar_text(bar(DONE, 4_000), 4_000, 16) == "\u2591" * 12 + "\u2588" * 4


def test_a_short_phase_has_at_least_one_cell_and_no_bar_exceeds_its_width() -> None:
    short = replace(DONE, prepare_ms=2, complete_ms=1)
    assert bar_text(bar(short, 3), 60_000, 16) == "\u2591\u2588"
    assert bar_text(bar(replace(DONE, prepare_ms=0), 0), 60_000, 16) == ""
    assert len(bar_text(bar(DONE, 4_000), 4_000, 5)) == 5


def test_an_open_bar_ends_in_an_arrow_and_unknown_phases_have_one_shade() -> None:
    assert bar_text(bar(OPEN, 4_000), 8_000, 16) == "\u2591" * 8 + "\u25b6"
    assert bar_text(bar(OPEN, 0), 8_000, 16) == "\u25b6"
    observed = replace(DONE, prepare_ms=None, complete_ms=None, is_observed=True)
    assert bar_text(bar(observed, 4_000), 8_000, 16) == "\u2592" * 8


def test_the_newest_rebalance_is_first_and_the_cursor_follows_it() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        pane.show([DONE], WALL_MS, {}, "")
        pane.show([DONE, OPEN], WALL_MS, {}, "")
        await pilot.pause()
        assert [row.rebalance for row in pane.timeline.rows] == [OPEN, DONE]
        assert pane.timeline.cursor_row is not None
        assert pane.timeline.cursor_row.rebalance is OPEN

    on_a_pane(play)


def test_a_cursor_on_an_older_rebalance_stays_there() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        pane.show([older(1), DONE], WALL_MS, {}, "")
        pane.timeline.focus()
        await pilot.press("j")
        pane.show([older(1), DONE, OPEN], WALL_MS, {}, "")
        await pilot.pause()
        assert pane.timeline.cursor_row is not None
        assert pane.timeline.cursor_row.rebalance == older(1)
        assert "A broker restart interrupted it" in pane.detail.text

    on_a_pane(play)


def test_an_open_rebalance_grows_and_stays_the_same_row_when_it_ends() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        pane.show([DONE, OPEN], WALL_MS, {}, "")
        await pilot.pause()
        first = pane.timeline.rows[0]
        assert pane.detail.text.endswith("Waiting for members for 2 s so far.")
        pane.show([DONE, OPEN], WALL_MS + 5_000, {}, "")
        await pilot.pause()
        assert pane.timeline.rows[0].took_ms == first.took_ms + 5_000
        assert pane.detail.text.endswith("Waiting for members for 7 s so far.")
        pane.show([DONE, ENDED], WALL_MS + 9_000, {}, "")
        await pilot.pause()
        assert (pane.timeline.rows[0].key, pane.timeline.rows[0].took_ms) == (first.key, 2_000)

    on_a_pane(play)


def test_the_scale_grows_in_steps_and_has_a_unit() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        scales = []
        for now_ms in (WALL_MS, WALL_MS + 2_900, WALL_MS + 3_100):
            pane.show([OPEN], now_ms, {}, "")
            scales.append(pane.timeline.legend.split("  ")[-1])
        assert scales == ["full bar = 2 s", "full bar = 5 s", "full bar = 10 s"]

    on_a_pane(play)


def test_the_details_have_causes_reason_and_assignment() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        reason = replace(DONE, reason="a pod\x1b[2J [bold]went[/bold]", joined=(member_id(2),), joined_count=1)
        pane.show([reason], WALL_MS, {member_id(1): "worker-1"}, "")
        await pilot.pause()
        assert pane.detail.text.splitlines() == [
            "Generation 4 \u00b7 session timed out \u00b7 2026-01-02 14:59:50.000 UTC",
            "Members took 3 s to join, the leader 1 s to assign; 2 members, 2 partitions moved.",
            "Joined    worker-2-1f2e3d4c",
            "Left      worker-3-1f2e3d4c: session timed out",
            "Reason    \u201ca pod\\x1b[2J [bold]went[/bold]\u201d",
            "Assigned  worker-1: orders:0,1",
            "          worker-2-1f2e3d4c: nothing",
        ]

    on_a_pane(play)


def test_each_cause_has_a_line_and_unnamed_members_are_counted() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        row = replace(
            DONE, left=("a", "b", "c"), left_count=9, left_causes=("member left", "session timed out", "member left")
        )
        pane.show([row], WALL_MS, {}, "")
        await pilot.pause()
        assert "Left      a, c: member left\n          b: session timed out\n          6 more\n" in pane.detail.text
        assert pane.timeline.rows[0].rebalance.left_count == 9

    on_a_pane(play)


def test_the_details_explain_every_outcome() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        for outcome, text in (
            (Outcome.SUPERSEDED, "another rebalance superseded it"),
            (Outcome.EMPTY, "It took 4 s; no members are left."),
            (Outcome.DELETED, "the group was deleted"),
            (Outcome.MEMBER_REPLACED, "came back with a new member id"),
        ):
            pane.show([replace(DONE, outcome=outcome, assignment=None)], WALL_MS, {}, "")
            await pilot.pause()
            assert text in pane.detail.text

    on_a_pane(play)


def test_a_rebalance_between_two_refreshes_has_no_duration() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        observed = replace(DONE, is_observed=True, ended_ms=DONE.started_ms, prepare_ms=None, complete_ms=None)
        pane.show([observed], WALL_MS, {}, "Observed from here.")
        await pilot.pause()
        assert "It began and ended between two refreshes; 2 members, 2 partitions moved." in pane.detail.text
        assert "~" not in "".join(strip.text for strip in pane.timeline.render_lines(pane.timeline.region.reset_offset))

    on_a_pane(play)


def test_assigned_partitions_are_sorted() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        pane.show([replace(DONE, assignment={member_id(1): (TopicPartitions("orders", (2, 1, 0)),)})], WALL_MS, {}, "")
        await pilot.pause()
        assert "orders:0,1,2" in pane.detail.text

    on_a_pane(play)


def test_an_observed_rebalance_is_described_as_observed() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        observed = replace(
            DONE, is_observed=True, cause=None, generation=None, prepare_ms=None, complete_ms=None, assignment=None
        )
        pane.show([observed], WALL_MS, {}, "Observed from here.")
        await pilot.pause()
        assert pane.detail.text.startswith("Generation - \u00b7 cause not known \u00b7 ")
        assert "It took about 4 s, as observed from outside" in pane.detail.text
        assert "the assignment of this rebalance is not known" in pane.detail.text

    on_a_pane(play)
