"""Rebalances as bars: to scale, newest first, under a cursor that stays where it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from textual.pilot import Pilot

from kgctl.model.groups import TopicPartitions
from kgctl.model.watched import Rebalance
from kgctl.tui.widgets.overview import OverviewPane
from kgctl.tui.widgets.timeline import Bar, drawn
from kgctl.watch import kept
from tests.kgctl.tui.group_looks import WALL_MS, member_id
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
    outcome=kept.STABLE,
    assignment={member_id(1): (TopicPartitions("orders", (0, 1)),), member_id(2): ()},
)
GOING = replace(
    DONE, started_ms=WALL_MS - 2_000, ended_ms=None, generation=None, cause="member joined", prepare_ms=None,
    complete_ms=None, left=(), left_count=0, left_causes=(), partitions_moved=None, outcome=kept.UNDER_WAY, assignment=None,
)  # fmt: skip
ENDED = replace(GOING, ended_ms=WALL_MS, generation=5, prepare_ms=1_990, complete_ms=10, outcome=kept.STABLE)


def on_a_pane(play: Callable[[OverviewPane, Pilot[None]], Awaitable[None]], size: tuple[int, int] = (80, 24)) -> None:
    async def run() -> None:
        pane = OverviewPane()
        async with Host(pane).run_test(size=size) as pilot:
            await play(pane, pilot)

    asyncio.run(run())


def older(number: int) -> Rebalance:
    return replace(DONE, started_ms=DONE.started_ms - 60_000 * number, ended_ms=None, outcome=kept.INTERRUPTED)


def bar(of: Rebalance, took_ms: int) -> Bar:
    return Bar("key", of, took_ms)


def test_a_bar_has_its_two_phases_to_scale() -> None:
    assert drawn(bar(DONE, 4_000), 8_000, 16) == "\u2591" * 6 + "\u2588" * 2
    assert drawn(bar(DONE, 4_000), 4_000, 16) == "\u2591" * 12 + "\u2588" * 4


def test_a_phase_that_took_any_time_has_a_cell_and_no_bar_is_too_long() -> None:
    short = replace(DONE, prepare_ms=2, complete_ms=1)
    assert drawn(bar(short, 3), 60_000, 16) == "\u2591\u2588"
    assert drawn(bar(replace(DONE, prepare_ms=0), 0), 60_000, 16) == ""
    assert len(drawn(bar(DONE, 4_000), 4_000, 5)) == 5


def test_a_bar_under_way_ends_in_an_arrow_and_one_of_unknown_phases_has_one_shade() -> None:
    assert drawn(bar(GOING, 4_000), 8_000, 16) == "\u2591" * 8 + "\u25b6"
    assert drawn(bar(GOING, 0), 8_000, 16) == "\u25b6"
    seen = replace(DONE, prepare_ms=None, complete_ms=None, is_seen=True)
    assert drawn(bar(seen, 4_000), 8_000, 16) == "\u2592" * 8


def test_the_newest_is_on_top_and_the_cursor_follows_it() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        pane.show([DONE], WALL_MS, {}, "")
        pane.show([DONE, GOING], WALL_MS, {}, "")
        await pilot.pause()
        assert [row.rebalance for row in pane.timeline.rows] == [GOING, DONE]
        assert pane.timeline.cursor_row is not None
        assert pane.timeline.cursor_row.rebalance is GOING

    on_a_pane(play)


def test_a_cursor_on_an_older_one_stays_there_when_another_comes() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        pane.show([older(1), DONE], WALL_MS, {}, "")
        pane.timeline.focus()
        await pilot.press("j")
        pane.show([older(1), DONE, GOING], WALL_MS, {}, "")
        await pilot.pause()
        assert pane.timeline.cursor_row is not None
        assert pane.timeline.cursor_row.rebalance == older(1)
        assert "a restart of the broker took it away" in pane.detail.text

    on_a_pane(play)


def test_one_that_is_under_way_grows_and_stays_the_same_row_when_it_ends() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        pane.show([DONE, GOING], WALL_MS, {}, "")
        await pilot.pause()
        first = pane.timeline.rows[0]
        assert pane.detail.text.endswith("Members are awaited for 2 s so far.")
        pane.show([DONE, GOING], WALL_MS + 5_000, {}, "")
        await pilot.pause()
        assert pane.timeline.rows[0].took_ms == first.took_ms + 5_000
        assert pane.detail.text.endswith("Members are awaited for 7 s so far.")
        pane.show([DONE, ENDED], WALL_MS + 9_000, {}, "")
        await pilot.pause()
        assert (pane.timeline.rows[0].key, pane.timeline.rows[0].took_ms) == (first.key, 2_000)

    on_a_pane(play)


def test_the_scale_goes_in_steps_and_has_a_unit() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        said = []
        for now_ms in (WALL_MS, WALL_MS + 2_900, WALL_MS + 3_100):
            pane.show([GOING], now_ms, {}, "")
            said.append(pane.timeline.legend.split("  ")[-1])
        assert said == ["full bar 2 s", "full bar 5 s", "full bar 10 s"]

    on_a_pane(play)


def test_the_details_say_who_left_and_why_and_who_got_what() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        reason = replace(DONE, reason="a pod\x1b[2J [bold]went[/bold]", joined=(member_id(2),), joined_count=1)
        pane.show([reason], WALL_MS, {member_id(1): "worker-1"}, "")
        await pilot.pause()
        assert pane.detail.text.splitlines() == [
            "Generation 4 \u00b7 session timed out \u00b7 2026-01-02 14:59:50.000 UTC",
            "Members took 3 s to join, the leader 1 s; 2 members, 2 partitions moved.",
            "In      worker-2-1f2e3d4c",
            "Out     worker-3-1f2e3d4c: session timed out",
            "Reason  \u201ca pod\\x1b[2J [bold]went[/bold]\u201d",
            "Gets    worker-1: orders:0,1",
            "        worker-2-1f2e3d4c: nothing",
        ]

    on_a_pane(play)


def test_members_that_are_not_named_are_counted_and_each_cause_has_its_line() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        row = replace(
            DONE, left=("a", "b", "c"), left_count=9, left_causes=("member left", "session timed out", "member left")
        )
        pane.show([row], WALL_MS, {}, "")
        await pilot.pause()
        assert "Out     a, c: member left\n        b: session timed out\n        6 more\n" in pane.detail.text
        assert pane.timeline.rows[0].rebalance.left_count == 9

    on_a_pane(play)


def test_what_was_cut_short_or_ended_empty_says_so() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        for outcome, said in (
            (kept.CUT_SHORT, "another rebalance came in between"),
            (kept.EMPTY, "then the group was empty"),
            (kept.DELETED, "then the group was deleted"),
            (kept.REPLACED, "came back under a new id"),
        ):
            pane.show([replace(DONE, outcome=outcome, assignment=None)], WALL_MS, {}, "")
            await pilot.pause()
            assert said in pane.detail.text

    on_a_pane(play)


def test_what_came_and_went_between_two_looks_has_no_length() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        seen = replace(DONE, is_seen=True, ended_ms=DONE.started_ms, prepare_ms=None, complete_ms=None)
        pane.show([seen], WALL_MS, {}, "Seen from here.")
        await pilot.pause()
        assert "It came and went between two looks; 2 members, 2 partitions moved." in pane.detail.text
        assert "~" not in "".join(strip.text for strip in pane.timeline.render_lines(pane.timeline.region.reset_offset))

    on_a_pane(play)


def test_partitions_that_somebody_got_stand_in_order() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        pane.show([replace(DONE, assignment={member_id(1): (TopicPartitions("orders", (2, 1, 0)),)})], WALL_MS, {}, "")
        await pilot.pause()
        assert "orders:0,1,2" in pane.detail.text

    on_a_pane(play)


def test_what_was_seen_from_outside_is_told_as_such() -> None:
    async def play(pane: OverviewPane, pilot: Pilot[None]) -> None:
        seen = replace(
            DONE, is_seen=True, cause=None, generation=None, prepare_ms=None, complete_ms=None, assignment=None
        )
        pane.show([seen], WALL_MS, {}, "Seen from here.")
        await pilot.pause()
        assert pane.detail.text.startswith("Generation - \u00b7 cause not known \u00b7 ")
        assert "It took some 4 s, as looks from outside tell" in pane.detail.text
        assert "who got what is not known" in pane.detail.text

    on_a_pane(play)
