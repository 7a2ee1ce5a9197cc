"""One group on the screen: every key, what each pane shows, what a refresh leaves as it is, how times go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from kgctl.client.net.errors import KgctlError, Unreachable
from kgctl.model.watched import GroupLook
from kgctl.tui.screens.group import ASSIGNMENT, MEMBERS, OFFSETS, OVERVIEW
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.tui.screens.rebalance import RebalanceDialog
from kgctl.tui.screens.removal import RemoveMemberDialog
from kgctl.tui.screens.reset import ResetDialog
from kgctl.tui.widgets.pane_names import PaneNames
from tests.kgctl.tui.group_looks import (
    AT_S,
    GROUP,
    WALL_MS,
    absent,
    completing,
    failed,
    group,
    long_story,
    look,
    member,
    member_id,
    on_kafka,
    preparing,
    started,
    story,
)
from tests.kgctl.tui.group_scene import MIDDLE, SMALL, Scene, opened
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

Play = Callable[["Scene"], Awaitable[None]]


def on(looks: Sequence[GroupLook | KgctlError | None], play: Play, size: tuple[int, int] = SMALL, **more: bool) -> None:
    async def run() -> None:
        async with opened(PreparedFeed([None], {GROUP: looks}), GROUP, size, **more) as scene:
            await play(scene)

    asyncio.run(run())


# --- panes ---


@pytest.mark.parametrize(
    ("keys", "pane"),
    [
        (["2"], MEMBERS),
        (["3"], ASSIGNMENT),
        (["4"], OFFSETS),
        (["4", "1"], OVERVIEW),
        (["tab"], MEMBERS),
        (["tab", "tab", "tab"], OFFSETS),
        (["tab"] * 4, OVERVIEW),
        (["shift+tab"], OFFSETS),
        (["l"], MEMBERS),
        (["l"] * 2, ASSIGNMENT),
        (["h"], OFFSETS),
        (["h"] * 3, MEMBERS),
        (["right"], MEMBERS),
        (["right"] * 3, OFFSETS),
        (["left"] * 2, ASSIGNMENT),
        (["left"] * 4, OVERVIEW),
    ],
)
def test_keys_change_the_pane_and_the_focus_goes_along(keys: list[str], pane: int) -> None:
    async def play(scene: Scene) -> None:
        await scene.press(*keys)
        screen = scene.screen
        panes = [screen.overview, screen.members, screen.assignment, screen.offsets]
        assert screen.pane == pane
        assert [one.display for one in panes] == [place == pane for place in range(4)]
        assert screen.focused is not None
        assert panes[pane] in screen.focused.ancestors
        assert f"[{pane + 1} " in scene.text

    on([look(events=story())], play)


def test_a_click_on_a_name_shows_its_pane() -> None:
    async def play(scene: Scene) -> None:
        assert await scene.pilot.click(PaneNames, offset=(18, 0))
        await scene.pilot.pause()
        assert scene.screen.pane == MEMBERS

    on([look(events=story())], play)


def test_escape_goes_back_to_all_groups() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("escape")
        assert isinstance(scene.app.screen, GroupsScreen)

    on([look(events=story())], play)


def test_members_are_below_the_rebalances_where_there_is_room() -> None:
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

    on([look(events=story())], play, MIDDLE)


# --- what the panes show ---


def test_the_overview_has_the_story_and_the_cursor_its_details() -> None:
    async def play(scene: Scene) -> None:
        assert "session timed out" in scene.text
        assert "Out     worker-4-1f2e3d4c: session timed out" in scene.text
        await scene.press("j", "j")
        assert "Generation 2 \u00b7 member joined" in scene.text
        await scene.press("k")
        assert "Reason  \u201ca new pod\u201d" in scene.text

    on([look(events=story())], play)


def test_enter_on_a_rebalance_shows_who_had_what_before_and_after() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("j", "enter")
        assert scene.screen.pane == ASSIGNMENT
        assert "Generation 3" in scene.text
        assert "3 move" in scene.text
        await scene.press("1", "k", "3")
        assert "Generation 12" in scene.text
        assert "1 moves" in scene.text

    on([look(events=story())], play)


def test_during_a_rebalance_the_assignment_is_said_to_be_open() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("3")
        assert "A rebalance is under way" in scene.text

    on([look(preparing(), [*story(), started(3.4, 12, "member joined")])], play)


def test_the_bar_of_a_rebalance_in_its_second_phase_has_both() -> None:
    async def play(scene: Scene) -> None:
        assert "Members were awaited for 3.2 s; now the leader's assignment is." in scene.text
        assert "\u2591\u2588\u25b6" in scene.text

    on([look(completing(), [*story(), started(3.4, 12, "member joined")])], play)


def test_a_real_kafka_says_what_it_does_not_tell_and_why() -> None:
    async def play(scene: Scene) -> None:
        assert "generation - \u00b7 leader -" in scene.text
        assert "DescribeGroups has no such fields" in scene.text
        assert "Rebalances are those seen since 15:00:00" in " ".join(scene.text.split())
        await scene.press("2")
        assert "HEARTBEAT is -" in scene.text

    on([look(on_kafka(), None)], play)


def test_what_a_real_kafka_shows_of_a_rebalance_is_a_bar_too() -> None:
    async def play(scene: Scene) -> None:
        await scene.look()
        assert "PreparingRebalance" in scene.text
        assert len(scene.screen.overview.timeline.rows) == 1
        await scene.look()
        (bar,) = scene.screen.overview.timeline.rows
        assert (bar.rebalance.is_seen, bar.rebalance.left_count) == (True, 1)
        assert "-1" in scene.text

    after = on_kafka(members=group().members[:2])
    on(
        [look(on_kafka(), None), look(on_kafka("PreparingRebalance"), None, after_s=2), look(after, None, after_s=4)],
        play,
    )


def test_what_was_seen_of_a_group_is_there_again_when_it_is_opened_again() -> None:
    async def play(scene: Scene) -> None:
        await scene.look()
        (bar,) = scene.screen.overview.timeline.rows
        await scene.press("escape")
        await until(lambda: isinstance(scene.app.screen, GroupsScreen))
        scene.app.open_group(GROUP)
        await scene.see("Rebalances are those seen since 15:00:00")
        assert [one.rebalance for one in scene.screen.overview.timeline.rows] == [bar.rebalance]

    after = on_kafka(members=group().members[:2])
    on([look(on_kafka(), None), look(after, None, after_s=2), look(after, None, after_s=60)], play, size=MIDDLE)


def test_the_line_of_a_member_loses_whole_parts_where_there_is_no_room() -> None:
    static = member(1, (0,), group_instance_id="instance-of-worker-1", client_id="reader-of-orders")

    async def narrow(scene: Scene) -> None:
        await scene.press("2")
        assert f"{member_id(1)} \u00b7 client id reader-of-orders " in scene.text
        (said,) = [line for line in scene.text.splitlines() if "client id" in line]
        assert "\u2026" not in said
        assert "instance-of" not in said

    async def wide(scene: Scene) -> None:
        await scene.press("2")
        assert (
            "client id reader-of-orders \u00b7 instance instance-of-worker-1 \u00b7 rebalance timeout 1 min"
            in scene.text
        )

    on([look(group(members=[static]))], narrow)
    on([look(group(members=[static]))], wide, size=(140, 40))


def test_a_heartbeat_that_is_late_is_shown_as_such_and_the_leader_has_a_star() -> None:
    late = [member(1, (0,)), member(2, (1,), heartbeat_age_ms=24_000)]

    async def play(scene: Scene) -> None:
        await scene.press("2")
        assert "\u2605 worker-1" in scene.text
        assert "24 s of 45 s" in scene.text
        seats = scene.screen.members.rows.rows
        assert [seat.standing.is_dead for seat in seats] == [False, True]

    on([look(group(members=late))], play)


# --- refreshes ---


def test_a_refresh_moves_no_cursor_and_no_scroll() -> None:
    async def play(scene: Scene) -> None:
        await scene.press(*["j"] * 12)
        timeline = scene.screen.overview.timeline
        before, row = timeline.scroll_offset, timeline.cursor_row
        assert before.y > 0
        text = scene.text
        await scene.look()
        assert timeline.scroll_offset == before
        assert timeline.cursor_row == row
        assert scene.text.splitlines()[5:] == text.splitlines()[5:]

    on([look(events=long_story()), look(after_s=2)], play)


def test_a_group_that_goes_away_says_so_and_comes_back() -> None:
    async def play(scene: Scene) -> None:
        await scene.look()
        assert "\u25cf Dead" in scene.text
        assert "does not exist" in scene.text
        assert "session timed out" in scene.text
        await scene.press("2")
        assert "No members." in scene.text
        await scene.press("4", "3", "1")
        await scene.look()
        assert "\u25cf Stable" in scene.text

    gone = look(absent(), after_s=2)
    on([look(events=story()), gone, look(after_s=4)], play)


def test_an_error_of_a_group_is_a_sentence_and_what_was_seen_stays() -> None:
    async def play(scene: Scene) -> None:
        await scene.look()
        assert "Broker 1 is loading." in scene.text
        assert "session timed out" in scene.text
        await scene.press("2")
        assert "worker-3" in scene.text

    error = look(failed("COORDINATOR_LOAD_IN_PROGRESS", "Broker 1 is loading."), None, after_s=2, story_error="no")
    on([look(events=story()), error], play)


def test_times_stand_still_while_nobody_answers() -> None:
    async def play(scene: Scene) -> None:
        assert "for 3.4 s" in scene.text
        await scene.pilot.press("ctrl+r")
        await until(lambda: scene.screen.polling.freshness.is_lost)
        scene.screen.kgctl.clock = lambda: AT_S + 50
        scene.screen.tick()
        await scene.pilot.pause()
        assert "for 3.4 s" in scene.text
        first = scene.text.partition("\n")[0]
        assert "NO ANSWER" in first
        assert GROUP in first
        assert "every" not in first

    on([look(events=story()), Unreachable("nobody there")], play)


def test_times_go_on_between_looks() -> None:
    async def play(scene: Scene) -> None:
        scene.screen.kgctl.clock = lambda: AT_S + 1
        scene.screen.tick()
        await scene.pilot.pause()
        assert "for 4.4 s" in scene.text
        assert "up to 56 s more" in scene.text

    on([look(preparing(), [*story(), started(3.4, 12, "member joined")])], play)


def test_a_broker_whose_clock_is_an_hour_behind_tells_no_other_times() -> None:
    async def play(scene: Scene) -> None:
        await scene.look()
        await scene.see("PreparingRebalance")
        assert "so far" in scene.text
        assert "1 h" not in scene.text
        assert "60 min" not in scene.text

    looks = [
        look(events=story()),
        look(replace(preparing(), state_since_ms=WALL_MS + 1_500), [started(-1.5, 12, "member joined")], after_s=2),
    ]
    on([replace(one, wall_ms=one.wall_ms + 3_600_000) for one in looks], play)


def test_control_characters_and_markup_in_names_do_no_harm() -> None:
    evil = "\x1b[2J[bold]x[/bold]\n\u202e"
    rows = [member(1, (0,), client_id=evil, host=evil, group_instance_id=evil, consumer_id=evil), member(2, (1,))]
    described = group(members=rows, assignment_strategy=evil, coordinator=evil)

    async def play(scene: Scene) -> None:
        for key in ("1", "2", "3", "4"):
            await scene.press(key)
            assert not {"\x1b", "\u202e"} & set(scene.text)
            assert "\\x1b[2J" in scene.text

    on([look(described, [*story(), started(3, 12, evil, evil)])], play, MIDDLE)


class Remembering(PreparedFeed):
    """Also knows whether each look was to have all of the story."""

    def __init__(self, looks: Sequence[GroupLook | KgctlError | None]) -> None:
        super().__init__([None], {GROUP: looks})
        self.anew: list[bool] = []

    async def look_at(self, group: str, *, anew: bool) -> GroupLook:
        self.anew.append(anew)
        return await super().look_at(group, anew=anew)


def test_all_of_the_story_is_asked_for_first_and_after_a_dialog_and_when_it_could_not_be_read() -> None:
    unread = look(None, None, after_s=4, story_error="no answer in time")

    async def run() -> None:
        feed = Remembering([look(events=story()), look(after_s=2), unread, look(events=story(), after_s=6)])
        async with opened(feed, GROUP) as scene:
            for _ in range(4):
                await scene.look()
            assert feed.anew == [True, False, False, True, False]
            await scene.press("b", "escape")
            await until(lambda: len(feed.anew) == 6)
            assert feed.anew[-1]

    asyncio.run(run())


def test_a_story_that_could_not_be_read_again_stays_and_says_so() -> None:
    async def play(scene: Scene) -> None:
        await scene.look()
        assert "The story could not be read again: no answer in time" in scene.text
        assert "session timed out" in scene.text

    on([look(events=story()), look(None, None, after_s=2, story_error="no answer in time")], play)


def test_events_that_cannot_be_read_are_said_to_be_left_out() -> None:
    lost = replace(story()[0], event="unreadable")

    async def play(scene: Scene) -> None:
        assert "Unreadable and left out: 1 of the events." in scene.text
        assert "session timed out" in scene.text

    on([look(events=[lost, *story()])], play, MIDDLE)


def test_what_members_have_during_a_rebalance_is_not_told_to_be_nothing() -> None:
    async def play(scene: Scene) -> None:
        await scene.press("2")
        assert [seat.partitions for seat in scene.screen.members.rows.rows] == [None, None, None]
        assert "PARTITIONS is -" in scene.text
        await scene.look()
        assert [seat.partitions for seat in scene.screen.members.rows.rows] == [2, 2, 2]
        assert "PARTITIONS is -" not in scene.text

    on([look(preparing(), story()), look(after_s=2)], play)


# --- actions ---


@pytest.mark.parametrize(("key", "dialog"), [("r", ResetDialog), ("b", RebalanceDialog), ("x", RemoveMemberDialog)])
@pytest.mark.parametrize("pane", ["1", "2", "3", "4"])
def test_a_key_opens_its_dialog_from_every_pane(key: str, dialog: type, pane: str) -> None:
    async def play(scene: Scene) -> None:
        await scene.press(pane, key)
        assert isinstance(scene.app.screen, dialog)
        assert scene.app.screen.group == GROUP

    on([look(events=story())], play)


@pytest.mark.parametrize("key", ["r", "b", "x"])
def test_read_only_switches_the_actions_off_in_plain_sight(key: str) -> None:
    async def play(scene: Scene) -> None:
        await scene.press(key)
        assert scene.app.screen is scene.screen
        assert not scene.screen.active_bindings[key].enabled

    on([look(events=story())], play, read_only=True)
