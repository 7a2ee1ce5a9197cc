"""The screen of one group: every key, the contents of each pane, refreshes, and durations that grow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from kgctl.client.net.errors import AuthenticationFailed, KgctlError, Unreachable
from kgctl.model.watched import GroupSnapshot
from kgctl.tui.dialogs.rebalance import RebalanceDialog
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.feed.groups import OneGroup
from kgctl.tui.feed.read import Read
from kgctl.tui.screens.group import ASSIGNMENT, MEMBERS, OFFSETS, OVERVIEW
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.tui.widgets.frame.pane_names import PaneNames
from tests.kgctl.tui.group_scene import MIDDLE, SMALL, Scene, opened
from tests.kgctl.tui.group_snapshots import (
    AT_S,
    GROUP,
    WALL_MS,
    absent,
    completing,
    failed,
    group,
    history,
    long_history,
    member,
    member_id,
    on_kafka,
    preparing,
    snapshot,
    started,
)
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

Play = Callable[["Scene"], Awaitable[None]]


def on(
    found: Sequence[GroupSnapshot | KgctlError | None], play: Play, size: tuple[int, int] = SMALL, **more: bool
) -> None:
    async def run() -> None:
        async with opened(PreparedFeed([None], {GROUP: found}), GROUP, size, **more) as scene:
            await play(scene)

    asyncio.run(run())


# --- panes ---


def test_keys_change_the_pane_and_the_focus_follows() -> None:
    async def play(scene: Scene) -> None:
        screen = scene.screen
        panes = [screen.overview, screen.members, screen.assignment, screen.offsets]
        steps = [("2", MEMBERS), ("3", ASSIGNMENT), ("4", OFFSETS), ("1", OVERVIEW), ("tab", MEMBERS)]
        steps += [("l", ASSIGNMENT), ("right", OFFSETS), ("tab", OVERVIEW), ("shift+tab", OFFSETS)]
        steps += [("h", ASSIGNMENT), ("left", MEMBERS)]
        for key, pane in steps:
            await scene.press(key)
            assert screen.pane == pane
            assert [one.display for one in panes] == [place == pane for place in range(4)]
            assert screen.focused is not None
            assert panes[pane] in screen.focused.ancestors
            assert f"[{pane + 1} " in scene.text

    on([snapshot(events=history())], play)


def test_a_click_on_a_pane_name_shows_the_pane() -> None:
    async def play(scene: Scene) -> None:
        assert await scene.pilot.click(PaneNames, offset=(18, 0))
        await scene.pilot.pause()
        assert scene.screen.pane == MEMBERS

    on([snapshot(events=history())], play)


def test_escape_returns_to_all_groups() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("escape")
        assert isinstance(scene.app.screen, GroupsScreen)

    on([snapshot(events=history())], play)


def test_members_are_below_the_rebalances_on_a_large_terminal() -> None:
    async def play(scene: Scene) -> None:
        screen = scene.screen
        assert (screen.overview.display, screen.members.display) == (True, True)
        assert "CONSUMER-ID" in scene.text
        await scene.press("3")
        assert (screen.overview.display, screen.members.display) == (False, False)
        await scene.press("1")
        await scene.pilot.resize_terminal(80, 24)
        await scene.pilot.pause()
        assert (screen.overview.display, screen.members.display) == (True, False)

    on([snapshot(events=history())], play, MIDDLE)


# --- contents ---


def test_the_overview_shows_the_history_and_details_of_the_selected_rebalance() -> None:
    async def play(scene: Scene) -> None:
        assert "session timed out" in scene.text
        assert "Left      worker-4-1f2e3d4c: session timed out" in scene.text
        await scene.press("j", "j")
        assert "Generation 2 \u00b7 member joined" in scene.text
        await scene.press("k")
        assert "Reason    \u201ca new pod\u201d" in scene.text

    on([snapshot(events=history())], play)


def test_enter_on_a_rebalance_shows_the_assignments_before_and_after() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("j", "enter")
        assert scene.screen.pane == ASSIGNMENT
        assert "Generation 3" in scene.text
        assert "3 move" in scene.text
        await scene.press("1", "k", "3")
        assert "Generation 12" in scene.text
        assert "1 moves" in scene.text

    on([snapshot(events=history())], play)


def test_during_a_rebalance_there_is_no_assignment_yet() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("3")
        assert "A rebalance is under way" in scene.text

    on([snapshot(preparing(), [*history(), started(3.4, 12, "member joined")])], play)


def test_the_bar_of_a_rebalance_in_its_second_phase_shows_both_phases() -> None:
    async def play(scene: Scene) -> None:
        assert "All members joined after 3.2 s; waiting for the leader's assignment." in scene.text
        assert "\u2591\u2588\u25b6" in scene.text

    on([snapshot(completing(), [*history(), started(3.4, 12, "member joined")])], play)


def test_values_that_kafka_does_not_report_are_explained() -> None:
    async def play(scene: Scene) -> None:
        assert "generation - \u00b7 leader -" in scene.text
        assert "this cluster does not report them" in scene.text
        assert "Only rebalances observed since 15:00:00 are shown" in " ".join(scene.text.split())
        await scene.press("2")
        assert "HEARTBEAT is -" in scene.text

    on([snapshot(on_kafka(), None)], play)


def test_an_observed_rebalance_is_a_bar_too() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        assert "PreparingRebalance" in scene.text
        assert len(scene.screen.overview.timeline.rows) == 1
        await scene.refresh()
        (bar,) = scene.screen.overview.timeline.rows
        assert (bar.rebalance.is_observed, bar.rebalance.left_count) == (True, 1)
        assert "-1" in scene.text

    after = on_kafka(members=group().members[:2])
    on(
        [
            snapshot(on_kafka(), None),
            snapshot(on_kafka("PreparingRebalance"), None, after_s=2),
            snapshot(after, None, after_s=4),
        ],
        play,
    )


def test_observed_rebalances_are_still_there_when_the_group_is_opened_again() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        (bar,) = scene.screen.overview.timeline.rows
        await scene.press("escape")
        await until(lambda: isinstance(scene.app.screen, GroupsScreen))
        scene.app.open_group(GROUP)
        await scene.see("Only rebalances observed since 15:00:00 are shown")
        assert [one.rebalance for one in scene.screen.overview.timeline.rows] == [bar.rebalance]

    after = on_kafka(members=group().members[:2])
    on(
        [snapshot(on_kafka(), None), snapshot(after, None, after_s=2), snapshot(after, None, after_s=60)],
        play,
        size=MIDDLE,
    )


def test_parts_of_the_member_line_that_do_not_fit_are_left_out() -> None:
    static = member(1, (0,), group_instance_id="instance-of-worker-1", client_id="reader-of-orders")

    async def narrow(scene: Scene) -> None:
        await scene.press("2")
        assert f"{member_id(1)} \u00b7 client id reader-of-orders " in scene.text
        (line,) = [line for line in scene.text.splitlines() if "client id" in line]
        assert "\u2026" not in line
        assert "instance-of" not in line

    async def wide(scene: Scene) -> None:
        await scene.press("2")
        assert (
            "client id reader-of-orders \u00b7 instance instance-of-worker-1 \u00b7 rebalance timeout 1 min"
            in scene.text
        )

    on([snapshot(group(members=[static]))], narrow)
    on([snapshot(group(members=[static]))], wide, size=(140, 40))


def test_a_late_heartbeat_is_highlighted_and_the_leader_has_a_star() -> None:
    late = [member(1, (0,)), member(2, (1,), heartbeat_age_ms=24_000)]

    async def play(scene: Scene) -> None:
        await scene.press("2")
        assert "\u2605 worker-1" in scene.text
        assert "24 s of 45 s" in scene.text
        items = scene.screen.members.rows.rows
        assert [item.phase.is_silent for item in items] == [False, True]

    on([snapshot(group(members=late))], play)


# --- refreshes ---


def test_a_refresh_moves_neither_the_cursor_nor_the_scroll_position() -> None:
    async def play(scene: Scene) -> None:
        await scene.press(*["j"] * 12)
        timeline = scene.screen.overview.timeline
        before, row = timeline.scroll_offset, timeline.cursor_row
        assert before.y > 0
        text = scene.text
        await scene.refresh()
        assert timeline.scroll_offset == before
        assert timeline.cursor_row == row
        assert scene.text.splitlines()[5:] == text.splitlines()[5:]

    on([snapshot(events=long_history()), snapshot(after_s=2)], play)


def test_a_deleted_group_is_dead_until_it_exists_again() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        assert "\u25cf Dead" in scene.text
        assert "does not exist" in scene.text
        assert "session timed out" in scene.text
        await scene.press("2")
        assert "No members." in scene.text
        await scene.press("4", "3", "1")
        await scene.refresh()
        assert "\u25cf Stable" in scene.text

    gone = snapshot(absent(), after_s=2)
    on([snapshot(events=history()), gone, snapshot(after_s=4)], play)


def test_an_error_of_a_group_is_a_sentence_and_the_contents_stay() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        assert "Broker 1 is loading." in scene.text
        assert "session timed out" in scene.text
        await scene.press("2")
        assert "worker-3" in scene.text

    error = snapshot(
        failed("COORDINATOR_LOAD_IN_PROGRESS", "Broker 1 is loading."), None, after_s=2, history_error="no"
    )
    on([snapshot(events=history()), error], play)


def test_durations_stop_while_the_cluster_does_not_answer() -> None:
    async def play(scene: Scene) -> None:
        assert "for 3.4 s" in scene.text
        await scene.pilot.press("ctrl+r")
        await until(lambda: scene.screen.polling.freshness.is_lost)
        scene.app._clock = lambda: AT_S + 50
        scene.screen.tick()
        await scene.pilot.pause()
        assert "for 3.4 s" in scene.text
        first = scene.text.partition("\n")[0]
        assert "NO ANSWER" in first
        assert GROUP in first
        assert "every" not in first

    on([snapshot(events=history()), Unreachable("connection refused")], play)


def test_credentials_that_are_revoked_are_the_reason_beside_the_last_answer() -> None:
    async def play(scene: Scene) -> None:
        await scene.pilot.press("ctrl+r")
        await until(lambda: scene.screen.polling.freshness.is_lost)
        await scene.pilot.pause()
        first = scene.text.partition("\n")[0]
        assert "NO ANSWER" in first
        assert "retrying" not in first
        assert "the broker does not accept user 'alice'" in scene.text
        assert "Retrying does not help" in scene.text
        assert "worker-3" in scene.text

    on([snapshot(events=history()), AuthenticationFailed("the broker does not accept user 'alice'")], play)


def test_durations_grow_between_refreshes() -> None:
    async def play(scene: Scene) -> None:
        scene.app._clock = lambda: AT_S + 1
        scene.screen.tick()
        await scene.pilot.pause()
        assert "for 4.4 s" in scene.text
        assert "for up to 56 s" in scene.text

    on([snapshot(preparing(), [*history(), started(3.4, 12, "member joined")])], play)


def test_durations_do_not_depend_on_clock_skew() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        await scene.see("PreparingRebalance")
        assert "so far" in scene.text
        assert "1 h" not in scene.text
        assert "60 min" not in scene.text

    found = [
        snapshot(events=history()),
        snapshot(replace(preparing(), state_since_ms=WALL_MS + 1_500), [started(-1.5, 12, "member joined")], after_s=2),
    ]
    on([replace(one, wall_ms=one.wall_ms + 3_600_000) for one in found], play)


def test_hostile_names_are_shown_as_text() -> None:
    evil = "\x1b[2J[bold]x[/bold]\n\u202e"
    rows = [member(1, (0,), client_id=evil, host=evil, group_instance_id=evil, consumer_id=evil), member(2, (1,))]
    described = group(members=rows, assignment_strategy=evil, coordinator=evil)

    async def play(scene: Scene) -> None:
        for key in ("1", "2", "3", "4"):
            await scene.press(key)
            assert not {"\x1b", "\u202e"} & set(scene.text)
            assert "\\x1b[2J" in scene.text

    on([snapshot(described, [*history(), started(3, 12, evil, evil)])], play, MIDDLE)


T = TypeVar("T")


class RecordingFeed(PreparedFeed):
    """Records for each snapshot whether it was to include the whole history."""

    def __init__(self, found: Sequence[GroupSnapshot | KgctlError | None]) -> None:
        super().__init__([None], {GROUP: found})
        self.whole: list[bool] = []

    async def read(self, read: Read[T]) -> T:
        if isinstance(read, OneGroup):
            self.whole.append(read.whole_history)
        return await super().read(read)


def test_the_whole_history_is_read_first_after_a_failure_and_after_a_dialog() -> None:
    unread = snapshot(None, None, after_s=4, history_error="no answer in time")

    async def run() -> None:
        feed = RecordingFeed(
            [snapshot(events=history()), snapshot(after_s=2), unread, snapshot(events=history(), after_s=6)]
        )
        async with opened(feed, GROUP) as scene:
            for _ in range(4):
                await scene.refresh()
            assert feed.whole == [True, False, False, True, False]
            await scene.press("b", "escape")
            await until(lambda: len(feed.whole) == 6)
            assert feed.whole[-1]

    asyncio.run(run())


def test_a_history_that_cannot_be_read_again_stays_with_the_error() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        assert "Reading the history failed: no answer in time" in scene.text
        assert "session timed out" in scene.text

    on([snapshot(events=history()), snapshot(None, None, after_s=2, history_error="no answer in time")], play)


def test_unreadable_events_are_reported_as_left_out() -> None:
    lost = replace(history()[0], event="unreadable")

    async def play(scene: Scene) -> None:
        assert "The history is incomplete: 1 unreadable event left out." in scene.text
        assert "session timed out" in scene.text

    on([snapshot(events=[lost, *history()])], play, MIDDLE)


def test_partitions_of_members_are_unknown_during_a_rebalance() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("2")
        assert [item.partitions for item in scene.screen.members.rows.rows] == [None, None, None]
        assert "PARTITIONS is -" in scene.text
        await scene.refresh()
        assert [item.partitions for item in scene.screen.members.rows.rows] == [2, 2, 2]
        assert "PARTITIONS is -" not in scene.text

    on([snapshot(preparing(), history()), snapshot(after_s=2)], play)


# --- actions ---


@pytest.mark.parametrize(("key", "dialog"), [("r", ResetDialog), ("b", RebalanceDialog), ("x", RemoveMemberDialog)])
def test_an_action_key_opens_its_dialog_from_every_pane(key: str, dialog: type[Any]) -> None:
    async def play(scene: Scene) -> None:
        for pane in ("1", "2", "3", "4"):
            await scene.press(pane, key)
            opened: Any = scene.app.screen
            assert isinstance(opened, dialog)
            assert opened.groups == (GROUP,)
            await scene.press("escape")
            await until(lambda: scene.app.screen is scene.screen)

    on([snapshot(events=history())], play)


def test_read_only_disables_the_actions() -> None:
    async def play(scene: Scene) -> None:
        for key in ("r", "b", "x"):
            await scene.press(key)
            assert scene.app.screen is scene.screen
            assert not scene.screen.active_bindings[key].enabled

    on([snapshot(events=history())], play, read_only=True)
