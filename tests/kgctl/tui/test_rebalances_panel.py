"""Rebalances as bars to scale with who caused them, newest first, and the sentences about the selected one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from kgctl.model.groups import TopicPartitions
from kgctl.model.history import LEFT_OR_TIMED_OUT
from kgctl.model.watched import Outcome, Rebalance
from kgctl.tui.widgets.group.bars import Bar, bar_text, bars, cause, scale_ms
from kgctl.tui.widgets.group.rebalance_text import sentences
from kgctl.tui.widgets.group.rebalances import RebalancesPanel
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
JOINED = replace(
    DONE,
    cause="member joined",
    joined=(member_id(5), member_id(6)),
    joined_count=2,
    left=(),
    left_count=0,
    left_causes=(),
)
OPEN = replace(
    DONE, started_ms=WALL_MS - 2_000, ended_ms=None, generation=None, cause="member joined", prepare_ms=None,
    complete_ms=None, left=(), left_count=0, left_causes=(), partitions_moved=None, outcome=Outcome.UNDER_WAY, assignment=None,
)  # fmt: skip
ENDED = replace(OPEN, ended_ms=WALL_MS, generation=5, prepare_ms=1_990, complete_ms=10, outcome=Outcome.STABLE)


def on_a_panel(
    play: Callable[[RebalancesPanel, Pilot[None]], Awaitable[None]], size: tuple[int, int] = (72, 24)
) -> None:
    async def run() -> None:
        panel = RebalancesPanel()
        async with Host(panel).run_test(size=size) as pilot:
            await play(panel, pilot)

    asyncio.run(run())


def older(number: int) -> Rebalance:
    return replace(
        DONE,
        started_ms=(at_ms := DONE.started_ms - 60_000 * number),
        ended_ms=at_ms,
        prepare_ms=None,
        outcome=Outcome.INTERRUPTED,
    )


def bar(of: Rebalance, took_ms: int) -> Bar:
    return Bar("key", of, took_ms, "")


def text_of(of: Rebalance, now_ms: int = WALL_MS) -> str:
    (row,) = bars([of], now_ms, {member_id(1): "first"})
    return "\n".join(sentences(row, {member_id(1): "first"}))


# ---- bars


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


def test_the_scale_grows_in_steps() -> None:
    scales = [scale_ms(bars([OPEN], now_ms, {})) for now_ms in (WALL_MS, WALL_MS + 2_900, WALL_MS + 3_100)]
    assert scales == [2_000, 5_000, 10_000]


# ---- who


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (DONE, "worker-3 timed out"),
        (JOINED, "worker-5 and 1 more joined"),
        (replace(JOINED, joined=()), "2 members joined"),
        (replace(DONE, cause="member left", left_causes=("member left",)), "worker-3 left"),
        (replace(DONE, cause=LEFT_OR_TIMED_OUT, left_causes=(LEFT_OR_TIMED_OUT,)), "worker-3 left or timed out"),
        (replace(DONE, cause="sync timed out", left_causes=("sync timed out",)), "sync timed out: worker-3 left"),
        (replace(DONE, cause="requested by an admin", left=(), left_count=0), "requested by an admin"),
        (replace(DONE, cause="broker restarted"), "broker restarted"),
        (replace(JOINED, cause=None, left=("a\x1b[2J",), left_count=1), "worker-5 and 1 more joined, a\\x1b[2J left"),
        (replace(OPEN, cause=None), "cause not known"),
        (replace(JOINED, outcome=Outcome.SUPERSEDED), "superseded: worker-5 and 1 more joined"),
        (replace(DONE, outcome=Outcome.INTERRUPTED), "interrupted: worker-3 timed out"),
        (replace(DONE, outcome=Outcome.DELETED), "group deleted"),
        (replace(JOINED, outcome=Outcome.MEMBER_REPLACED, joined=(member_id(1),), joined_count=1), "first came back"),
    ],
)
def test_the_cause_names_who(of: Rebalance, text: str) -> None:
    assert cause(of, {member_id(1): "first"}) == text


# ---- the table


def test_the_newest_rebalance_is_first_and_the_cursor_follows_it() -> None:
    async def play(panel: RebalancesPanel, pilot: Pilot[None]) -> None:
        panel.show_rebalances([DONE], WALL_MS, {}, [])
        panel.show_rebalances([DONE, OPEN], WALL_MS, {}, [])
        await pilot.pause()
        assert [row.rebalance for row in panel.table.rows] == [OPEN, DONE]
        assert panel.table.cursor_row is not None
        assert panel.table.cursor_row.rebalance is OPEN
        assert panel.title_text.startswith("\u00b3\u25b8Rebalances 2 \u00b7 \u2591 join \u2588 assign \u00b7 bar 5s")

    on_a_panel(play)


def test_a_cursor_on_an_older_rebalance_stays_there() -> None:
    async def play(panel: RebalancesPanel, pilot: Pilot[None]) -> None:
        panel.show_rebalances([older(1), DONE], WALL_MS, {}, [])
        panel.table.focus()
        await pilot.press("j")
        panel.show_rebalances([older(1), DONE, OPEN], WALL_MS, {}, [])
        await pilot.pause()
        assert panel.table.cursor_row is not None
        assert panel.table.cursor_row.rebalance == older(1)

    on_a_panel(play)


def test_an_open_rebalance_grows_and_stays_the_same_row_when_it_ends() -> None:
    async def play(panel: RebalancesPanel, pilot: Pilot[None]) -> None:
        panel.show_rebalances([DONE, OPEN], WALL_MS, {}, [])
        first = panel.table.rows[0]
        panel.show_rebalances([DONE, OPEN], WALL_MS + 5_000, {}, [])
        assert panel.table.rows[0].took_ms == first.took_ms + 5_000
        panel.show_rebalances([DONE, ENDED], WALL_MS + 9_000, {}, [])
        assert (panel.table.rows[0].key, panel.table.rows[0].took_ms) == (first.key, 2_000)

    on_a_panel(play)


def test_rows_are_whole_and_a_filter_selects_by_member_and_duration() -> None:
    async def play(panel: RebalancesPanel, pilot: Pilot[None]) -> None:
        panel.show_rebalances([JOINED, older(-1)], WALL_MS, {}, ["Observed."])
        panel.table.focus()
        await pilot.pause()
        lines = [strip.text for strip in panel.table.render_lines(panel.table.region.reset_offset)]
        assert lines[1].split()[2] == "interrupted"
        assert "4   worker-5 +1 joined" in lines[2] or "4  worker-5 +1 joined" in lines[2]
        assert lines[2].split()[-3:] == ["4s", "+2", "2"]
        assert lines[1].split()[-3:] == ["-", "-1", "2"], "an interrupted rebalance has no duration"
        await pilot.press("slash", *"took:>1", "enter")
        assert [row.cause for row in panel.table.rows] == ["worker-5 and 1 more joined"]
        await pilot.press("escape", "slash", *"member:worker-3", "enter")
        assert len(panel.table.rows) == 1

    on_a_panel(play)


# ---- sentences


def test_the_sentences_have_phases_causes_reason_and_moment() -> None:
    reason = replace(DONE, reason="a pod\x1b[2J [bold]went[/bold]", joined=(member_id(1),), joined_count=1)
    assert text_of(reason).splitlines() == [
        "Members took 3 s to join, the leader 1 s to assign; 2 members, 2 partitions moved.",
        "Joined: first",
        "Left (session timed out): worker-3",
        "Reason: \u201ca pod\\x1b[2J [bold]went[/bold]\u201d",
        "Began 2026-01-02 14:59:50.000 UTC.",
    ]


def test_each_cause_has_a_line_and_unnamed_members_are_counted() -> None:
    row = replace(
        DONE, left=("a", "b", "c"), left_count=9, left_causes=("member left", "session timed out", "member left")
    )
    assert "Left (member left): a, c\nLeft (session timed out): b\nLeft: 6 more\n" in text_of(row)


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (OPEN, "Waiting for members for 2 s so far."),
        (replace(OPEN, prepare_ms=900), "All members joined after 900 ms; waiting for the leader's assignment."),
        (older(1), "A broker restart interrupted it"),
        (replace(DONE, outcome=Outcome.SUPERSEDED), "another rebalance superseded it"),
        (replace(DONE, outcome=Outcome.EMPTY), "It took 4 s; no members are left."),
        (replace(DONE, outcome=Outcome.DELETED), "the group was deleted"),
        (replace(DONE, outcome=Outcome.MEMBER_REPLACED), "came back with a new member id"),
        (
            replace(DONE, is_observed=True, ended_ms=DONE.started_ms, prepare_ms=None, complete_ms=None),
            "It began and ended between two refreshes; 2 members, 2 partitions moved.",
        ),
        (
            replace(DONE, is_observed=True, cause=None, prepare_ms=None, complete_ms=None),
            "It took about 4 s, as observed from outside",
        ),
    ],
)
def test_the_sentences_explain_every_outcome(of: Rebalance, text: str) -> None:
    assert text in text_of(of)
