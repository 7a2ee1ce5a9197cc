"""The screen of one group: every key, the contents of each panel, three sizes, refreshes, and durations that grow."""

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
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.tui.widgets.assignment.matrix import View
from tests.kgctl.tui import snapshots
from tests.kgctl.tui.group_scene import LARGE, MIDDLE, SMALL, Scene, opened
from tests.kgctl.tui.group_snapshots import (
    AT_S,
    GROUP,
    WALL_MS,
    absent,
    crowd,
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


# --- panels ---


def shown(scene: Scene) -> list[str]:
    """The panels that are on the screen."""
    panels = ("state", "lag", "members", "partitions", "rebalances", "rebalance")
    return [name for name in panels if scene.screen.query_one(f"#{name}").region]


@pytest.mark.parametrize(
    ("size", "panels"),
    [
        (SMALL, ["state", "members", "partitions", "rebalances"]),
        (LARGE, ["state", "lag", "members", "partitions", "rebalances", "rebalance"]),
    ],
)
def test_each_number_zooms_a_panel_also_one_that_the_size_hides(size: tuple[int, int], panels: list[str]) -> None:
    async def play(scene: Scene) -> None:
        assert shown(scene) == panels
        for number, name in enumerate(("members", "partitions", "rebalances", "rebalance", "lag"), 1):
            await scene.press(str(number))
            assert shown(scene) == [name]
            panel = scene.screen.query_one(f"#{name}")
            assert panel.outer_size == (size[0], size[1] - 2)
            assert panel.has_focus_within
        await scene.press("escape")
        assert shown(scene) == panels
        await scene.press("3", "3")
        assert shown(scene) == panels

    on([snapshot(events=history())], play, size)


def test_tab_visits_each_table_and_enter_zooms_it() -> None:
    async def play(scene: Scene) -> None:
        screen = scene.screen
        tables = [screen.members.table, screen.partitions.table, screen.rebalances.table, screen.rebalance.grid]
        for widget in [*tables, tables[0]]:
            assert screen.focused is widget
            await scene.press("tab")
        await scene.press("shift+tab", "shift+tab", "shift+tab")
        assert screen.focused is tables[2]
        await scene.press("enter")
        assert shown(scene) == ["rebalance"]
        await scene.press("escape", "shift+tab", "shift+tab", "enter")
        assert shown(scene) == ["members"]

    on([snapshot(events=history())], play, MIDDLE)


def test_escape_returns_to_all_groups() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("escape")
        assert isinstance(scene.app.screen, GroupsScreen)

    on([snapshot(events=history())], play)


def test_brackets_step_through_the_groups_in_the_order_of_their_table() -> None:
    names = ["billing", "audit", "checkout"]
    everything = snapshots.snapshot(
        [snapshots.group(name, lags=(lag,)) for name, lag in zip(names, (9, 5, 7), strict=True)]
    )
    ones = {name: [GroupSnapshot(AT_S, WALL_MS, replace(group(), group=name), ())] for name in names}

    async def run() -> None:
        async with opened(PreparedFeed([everything], ones), "billing", MIDDLE) as scene:
            await until(lambda: scene.app.cluster is not None)
            found = []
            for key in ("right_square_bracket", "right_square_bracket", "right_square_bracket", "left_square_bracket"):
                await scene.press(key)
                await until(lambda: scene.screen.polling.answers)
                found.append(scene.screen.group)
            assert found == ["checkout", "audit", "billing", "audit"], "the largest lag first"
            await scene.press("2")
            await scene.press("right_square_bracket")
            await until(lambda: scene.screen.zoom.panel is scene.screen.partitions)
            await scene.press("escape", "escape", "s", "S")
            assert isinstance(scene.app.screen, GroupsScreen)
            order = [row.group for row in scene.app.screen.rows.rows]
            await scene.press("home", "enter")
            await until(lambda: isinstance(scene.app.screen, GroupScreen))
            await scene.press("right_square_bracket")
            assert scene.screen.group == order[1]

    asyncio.run(run())


def test_brackets_need_another_group() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("right_square_bracket")
        assert scene.screen.group == GROUP
        assert not scene.screen.active_bindings["right_square_bracket"].enabled

    on([snapshot(events=history())], play)


# --- contents ---


def test_the_header_has_verdict_lag_growth_and_how_far_the_group_is_behind() -> None:
    async def play(scene: Scene) -> None:
        for _ in range(14):
            await scene.refresh()
        first = scene.text.partition("\n")[0]
        assert f"kgctl \u203a 127.0.0.1:9092 \u203a {GROUP}" in first
        assert "\u25b2 LAGGING  4,900  +50/s  1 min behind" in first
        assert "\u25b2 lagging: " in scene.text

    def after(seconds: int) -> GroupSnapshot:
        rows = tuple(
            replace(
                one,
                current_offset=one.current_offset + 10 * seconds,
                log_end_offset=one.log_end_offset + 60 * seconds,
                lag=one.lag + 50 * seconds,
            )
            if one.partition == 0
            else replace(one, log_end_offset=one.current_offset, lag=0)
            for one in group().partitions
        )
        return snapshot(group(partitions=rows), after_s=seconds)

    on([snapshot(events=history()), *(after(7 * n) for n in range(1, 15))], play, MIDDLE)


def test_the_members_have_their_lag_and_the_leader_a_star() -> None:
    async def play(scene: Scene) -> None:
        assert [(item.name, item.partitions, item.lag) for item in scene.screen.members.table.rows] == [
            ("worker-1", 2, 25), ("worker-2", 2, 125), ("worker-3", 2, 225)
        ]  # fmt: skip
        assert "worker-1 \u2605" in scene.text
        assert "worker-2 \u2605" not in scene.text

    on([snapshot(events=history())], play)


def test_a_silent_member_is_named_with_the_time_until_it_is_evicted() -> None:
    late = [member(1, (0,)), member(2, (1,), heartbeat_age_ms=24_000)]

    async def play(scene: Scene) -> None:
        assert "worker-2 silent, evicted in 21s" in scene.text
        assert "24s" in scene.text
        await scene.press("1")
        assert "silent, evicted in 21s" in scene.text
        scene.app._clock = lambda: AT_S + 5
        scene.screen.tick()
        await scene.pilot.pause()
        assert "silent, evicted in 16s" in scene.text
        assert "29s of 45s" in scene.text
        assert "700ms" in scene.text, "a member that is not silent is not aged"

    on([snapshot(group(members=late))], play, MIDDLE)


def test_a_filter_selects_members_and_partitions() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("slash", *"status:not-rej", "enter")
        assert [item.name for item in scene.screen.members.table.rows] == ["worker-2"]
        assert "Members 1 of 3" in scene.text
        await scene.press("tab", "slash", *"lag:>90", "enter")
        assert [row.partition for row in scene.screen.partitions.table.rows] == [5, 4]

    on([snapshot(preparing(), history())], play, MIDDLE)


def test_the_selected_rebalance_shows_what_each_member_gained_and_lost() -> None:
    async def play(scene: Scene) -> None:
        assert "worker-4 timed out" in scene.text
        assert "Left (session timed out): worker-4" in scene.text
        await scene.press("tab", "tab", "j")
        assert "Gen 3 \u00b7 worker-3 and 1 more joined" in scene.text
        assert "Reason: \u201ca new pod\u201d" in scene.text
        assert "\u25b34" in scene.text
        await scene.press("v", "1", "v")
        assert scene.screen.rebalance.view is View.BEFORE

    on([snapshot(events=history())], play, LARGE)


def test_values_that_kafka_does_not_report_are_explained() -> None:
    async def play(scene: Scene) -> None:
        assert "generation -" in scene.text
        assert "leader -" in scene.text
        words = " ".join(scene.text.replace("\u2502", " ").split())
        assert "Only rebalances observed since 15:00:00 are shown" in words
        assert "HEARTBEAT is -" in scene.text

    on([snapshot(on_kafka(), None)], play, MIDDLE)


def test_an_observed_rebalance_is_a_bar_too_and_stays_when_the_group_is_opened_again() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        assert "Preparing" in scene.text
        assert len(scene.screen.rebalances.table.rows) == 1
        await scene.refresh()
        (bar,) = scene.screen.rebalances.table.rows
        assert (bar.rebalance.is_observed, bar.cause) == (True, "worker-3 left")
        await scene.press("escape")
        await until(lambda: isinstance(scene.app.screen, GroupsScreen))
        scene.app.open_group(GROUP)
        await scene.see("Only rebalances observed since 15:00:00 are shown")
        assert [one.rebalance for one in scene.screen.rebalances.table.rows] == [bar.rebalance]

    after = on_kafka(members=group().members[:2])
    on(
        [
            snapshot(on_kafka(), None),
            snapshot(on_kafka("PreparingRebalance"), None, after_s=2),
            snapshot(after, None, after_s=4),
            snapshot(after, None, after_s=60),
        ],
        play,
        MIDDLE,
    )


def test_details_of_a_member_that_do_not_fit_are_left_out() -> None:
    static = member(1, (0,), group_instance_id="instance-of-worker-1", client_id="reader-of-orders")

    async def narrow(scene: Scene) -> None:
        await scene.press("1")
        (line,) = [line for line in scene.text.splitlines() if "client id" in line]
        assert f"{member_id(1)} \u00b7 client id reader-of-orders " in line
        assert "\u2026" not in line
        assert "rebalance" not in line

    async def wide(scene: Scene) -> None:
        await scene.press("1")
        assert "\u2502 client id reader-of-orders \u00b7 rebalance timeout 1 min" in scene.text

    on([snapshot(group(members=[static]))], narrow)
    on([snapshot(group(members=[static]))], wide, size=(140, 40))


def test_110_members_and_500_partitions_are_readable_at_every_size() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        assert "Members 110" in scene.text
        assert "Partitions 500" in scene.text
        assert "worker-1 \u2605" in scene.text
        lines = scene.text.splitlines()
        assert {len(line) for line in lines} == {scene.app.size.width}
        await scene.press("4", "G")
        assert "worker-99" in scene.text

    for size in (SMALL, LARGE):
        on([snapshot(crowd(shift), after_s=2 * shift) for shift in range(2)], play, size)


# --- refreshes ---


def test_a_refresh_moves_neither_the_cursor_nor_the_scroll_position() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("3", *["j"] * 30)
        timeline = scene.screen.rebalances.table
        before, row = timeline.scroll_offset, timeline.cursor_row
        assert before.y > 0
        text = scene.text
        await scene.refresh()
        assert timeline.scroll_offset == before
        assert timeline.cursor_row == row
        assert scene.text.splitlines()[1:] == text.splitlines()[1:]

    on([snapshot(events=long_history()), snapshot(after_s=2)], play)


def test_a_deleted_group_is_dead_until_it_exists_again() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        assert "\u25cf Dead" in scene.text
        assert "does not exist" in scene.text
        assert "worker-4 timed out" in scene.text
        assert "Members 0" in scene.text
        await scene.press("4", "3", "1", "escape")
        await scene.refresh()
        assert "\u25cf Stable" in scene.text

    gone = snapshot(absent(), after_s=2)
    on([snapshot(events=history()), gone, snapshot(after_s=4)], play)


def test_an_error_of_a_group_is_a_sentence_and_the_contents_stay() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        assert "Broker 1 is loading." in scene.text
        assert "worker-4 timed out" in scene.text
        assert "worker-3" in scene.text

    error = snapshot(
        failed("COORDINATOR_LOAD_IN_PROGRESS", "Broker 1 is loading."), None, after_s=2, history_error="no"
    )
    on([snapshot(events=history()), error], play)


def test_durations_stop_while_the_cluster_does_not_answer() -> None:
    async def play(scene: Scene) -> None:
        assert "Stable 3.4s" in scene.text
        await scene.pilot.press("ctrl+r")
        await until(lambda: scene.screen.polling.freshness.is_lost)
        scene.app._clock = lambda: AT_S + 50
        scene.screen.tick()
        await scene.pilot.pause()
        assert "Stable 3.4s" in scene.text
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

    refused = AuthenticationFailed("the broker does not accept user 'alice'")
    on([snapshot(events=history()), refused], play, MIDDLE)


def test_durations_grow_between_refreshes() -> None:
    async def play(scene: Scene) -> None:
        scene.app._clock = lambda: AT_S + 1
        scene.screen.tick()
        await scene.pilot.pause()
        assert "Preparing 4.4s" in scene.text
        assert "rebalance timeout in 56s" in scene.text
        assert "worker-3 silent, evicted in 13s" in scene.text

    on([snapshot(preparing(), [*history(), started(3.4, 12, "member joined")])], play, MIDDLE)


def test_durations_do_not_depend_on_clock_skew() -> None:
    async def play(scene: Scene) -> None:
        await scene.refresh()
        await scene.see("\u25cf Preparing")
        assert "so far" in scene.text
        assert "1h" not in scene.text
        assert "60m" not in scene.text

    found = [
        snapshot(events=history()),
        snapshot(replace(preparing(), state_since_ms=WALL_MS + 1_500), [started(-1.5, 12, "member joined")], after_s=2),
    ]
    on([replace(one, wall_ms=one.wall_ms + 3_600_000) for one in found], play, MIDDLE)


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
        assert "worker-4 timed out" in scene.text

    on([snapshot(events=history()), snapshot(None, None, after_s=2, history_error="no answer in time")], play)


def test_unreadable_events_are_reported_as_left_out() -> None:
    lost = replace(history()[0], event="unreadable")

    async def play(scene: Scene) -> None:
        assert "The history is incomplete: 1 unreadable event left out." in scene.text
        assert "worker-4 timed out" in scene.text

    on([snapshot(events=[lost, *history()])], play, MIDDLE)


def test_partitions_of_members_are_unknown_during_a_rebalance() -> None:
    async def play(scene: Scene) -> None:
        assert [item.partitions for item in scene.screen.members.table.rows] == [None, None, None]
        assert "PARTS is -" in scene.text
        await scene.refresh()
        assert [item.partitions for item in scene.screen.members.table.rows] == [2, 2, 2]
        assert "PARTS is -" not in scene.text

    on([snapshot(preparing(), history()), snapshot(after_s=2)], play, MIDDLE)


# --- actions ---


def test_a_member_that_goes_stays_under_the_cursor_and_no_action_aims_at_another() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("j", "j")
        await scene.refresh()
        rows = scene.screen.members.table
        assert (rows.gone, rows.cursor_row.name) == ("gone", "worker-3")
        assert "Members 2" in scene.text
        await scene.press("x")
        assert scene.app.screen is scene.screen
        (toast,) = scene.app._notifications
        assert toast.message == "worker-3 is gone. Move the cursor to choose another one."
        await scene.press("k", "x")
        opened: Any = scene.app.screen
        assert isinstance(opened, RemoveMemberDialog)

    on([snapshot(events=history()), snapshot(group(members=group().members[:2]), after_s=2)], play, MIDDLE)


def test_an_action_key_opens_its_dialog_from_every_panel() -> None:
    dialogs: dict[str, type[Any]] = {"r": ResetDialog, "b": RebalanceDialog, "x": RemoveMemberDialog}

    async def play(scene: Scene) -> None:
        for pane in ("1", "2", "3", "4"):
            await scene.press(pane)
            for key, dialog in dialogs.items():
                await scene.press(key)
                opened: Any = scene.app.screen
                assert isinstance(opened, dialog), (pane, key)
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
