"""One group on the screen: every key, what each pane shows, and a real group that goes through a rebalance."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from broker.local import LocalBroker
from kgctl.client.bootstrap import parse
from kgctl.client.errors import KgctlError, Unreachable
from kgctl.model.watched import GroupLook
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed import ClusterFeed, Feed
from kgctl.tui.screens.group import ASSIGNMENT, MEMBERS, OFFSETS, OVERVIEW, GroupScreen
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.tui.screens.plan import Stage
from kgctl.tui.screens.rebalance import RebalanceDialog
from kgctl.tui.screens.removal import RemoveMemberDialog
from kgctl.tui.screens.reset import ResetDialog
from kgctl.tui.widgets.pane_names import PaneNames
from tests.kgctl.commandline import Kgctl, fill
from tests.tui.group_looks import (
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
    on_kafka,
    preparing,
    started,
    story,
)
from tests.tui.joining import Joining
from tests.tui.prepared import PreparedFeed
from tests.tui.waiting import until

SMALL, MIDDLE = (80, 24), (120, 40)
Play = Callable[["Scene"], Awaitable[None]]


class Scene:
    """What a person does at the screen of a group, and sees there."""

    def __init__(self, app: KgctlApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def screen(self) -> GroupScreen:
        (found,) = [screen for screen in self.app.screen_stack if isinstance(screen, GroupScreen)]
        return found

    @property
    def text(self) -> str:
        """All that is on the terminal."""
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def look(self) -> None:
        """The next look, at once."""
        feed = self.app.feed
        assert isinstance(feed, PreparedFeed)
        before = feed.asked
        await self.pilot.press("ctrl+r")
        await until(lambda: feed.asked > before)
        await self.pilot.pause()

    async def see(self, words: str) -> None:
        await until(lambda: words in self.text)


@asynccontextmanager
async def opened(
    feed: Feed, group: str, size: tuple[int, int] = SMALL, *, interval_s: float = 300.0, **more: bool
) -> AsyncIterator[Scene]:
    clocks = {} if isinstance(feed, ClusterFeed) else {"clock": lambda: AT_S, "wall_ms": lambda: WALL_MS}
    app = KgctlApp(feed, group=group, interval_s=interval_s, **clocks, **more)  # type: ignore[arg-type]
    async with app.run_test(size=size) as pilot:
        await until(app.heard.is_set)
        await pilot.pause()
        yield Scene(app, pilot)


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
        assert "NO ANSWER" in scene.text

    on([look(events=story()), Unreachable("nobody there")], play)


def test_times_go_on_between_looks() -> None:
    async def play(scene: Scene) -> None:
        scene.screen.kgctl.clock = lambda: AT_S + 1
        scene.screen.tick()
        await scene.pilot.pause()
        assert "for 4.4 s" in scene.text
        assert "up to 56 s more" in scene.text

    on([look(preparing(), [*story(), started(3.4, 12, "member joined")])], play)


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


# --- a real group ---


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as running:
        yield running


@pytest.fixture
def feed(broker: LocalBroker) -> Iterator[ClusterFeed]:
    feed = ClusterFeed(parse(broker.bootstrap_servers), 10)
    yield feed
    feed.close()


def test_a_real_group_is_followed_through_every_state(broker: LocalBroker, feed: ClusterFeed) -> None:
    kgctl = Kgctl(broker.bootstrap_servers)
    assert kgctl("topics", "create", "walk", "--partitions", 2).exit_code == 0

    async def play(stack: ExitStack) -> None:
        first, second = (
            stack.enter_context(closing(Joining(broker.bootstrap_servers, "walked", ["walk"], name)))
            for name in ("worker-a", "worker-b")
        )
        await asyncio.to_thread(first.join)
        await asyncio.to_thread(first.sync, {first.member_id: {"walk": [0, 1]}})
        async with opened(feed, "walked", MIDDLE, interval_s=0.5) as scene:
            await scene.see("\u25cf Stable")
            assert "generation 1 \u00b7 leader worker-a" in scene.text
            assert "1 member, which has its assignment" in scene.text

            joining = asyncio.create_task(asyncio.to_thread(second.join))
            await scene.see("\u25cf PreparingRebalance")
            await scene.see("1 of 2 members joined, waiting for worker-a, up to ")
            assert "\u25cb worker-a missing" in scene.text
            assert "\u25cf worker-b joined" in scene.text
            await scene.see("Under way \u00b7 member joined")

            await asyncio.gather(asyncio.to_thread(first.join), joining)
            await scene.see("\u25cf CompletingRebalance")
            await scene.see("0 of 2 members synced, waiting for the assignment by the leader worker-a")
            syncing = asyncio.create_task(asyncio.to_thread(second.sync))
            await scene.see("\u2713 worker-b synced")
            owned = {first.member_id: {"walk": [0]}, second.member_id: {"walk": [1]}}
            await asyncio.to_thread(first.sync, owned)
            await syncing

            await scene.see("\u25cf Stable")
            await scene.see("Generation 2 \u00b7 member joined")
            assert "2 members, each has its assignment" in scene.text
            newest = scene.screen.overview.timeline.rows[0].rebalance
            assert (newest.generation, newest.joined, newest.partitions_moved) == (2, (second.member_id,), 1)
            await scene.press("3")
            assert "1 moves" in scene.text

            await asyncio.to_thread(second.leave)
            await scene.press("1")
            await scene.see("member left")
            await asyncio.to_thread(first.leave)
            await scene.see("\u25cf Empty")

    with ExitStack() as stack:
        asyncio.run(play(stack))


def test_a_group_that_is_not_there_is_dead_until_it_is_there(broker: LocalBroker, feed: ClusterFeed) -> None:
    kgctl = Kgctl(broker.bootstrap_servers)
    assert kgctl("topics", "create", "late", "--partitions", 1).exit_code == 0
    fill(kgctl, "late", [5])

    async def play() -> None:
        async with opened(feed, "later", interval_s=0.5) as scene:
            await scene.see("\u25cf Dead")
            assert "This screen waits for it." in scene.text
            await asyncio.to_thread(kgctl.commit, "later", "late", p0=3)
            await scene.see("\u25cf Empty")
            await scene.press("4")
            await scene.see("late")

    asyncio.run(play())


def test_a_dialog_begins_with_what_the_cursor_is_on(broker: LocalBroker, feed: ClusterFeed) -> None:
    kgctl = Kgctl(broker.bootstrap_servers)
    assert kgctl("topics", "create", "acts", "--partitions", 3).exit_code == 0
    fill(kgctl, "acts", [5, 5, 5])

    async def play(stack: ExitStack) -> None:
        first, second = (
            stack.enter_context(closing(Joining(broker.bootstrap_servers, "acted", ["acts"], name)))
            for name in ("worker-a", "worker-b")
        )
        await asyncio.to_thread(first.join)
        async with opened(feed, "acted", interval_s=0.5) as scene:
            joining = asyncio.create_task(asyncio.to_thread(second.join))
            await scene.see("worker-b joined")
            await asyncio.gather(asyncio.to_thread(first.join), joining)
            owned = {first.member_id: {"acts": [0, 1]}, second.member_id: {"acts": [2]}}
            await asyncio.gather(asyncio.to_thread(first.sync, owned), asyncio.to_thread(second.sync))
            await scene.see("\u25cf Stable")
            await scene.press("2", "j", "x")
            dialog = scene.app.screen
            assert isinstance(dialog, RemoveMemberDialog)
            await until(lambda: dialog.chosen is not None)
            wanted = scene.screen.members.cursor_row
            assert wanted is not None
            assert dialog.chosen is not None
            assert dialog.chosen.consumer_id == wanted.consumer_id == second.member_id
            await scene.press("escape", "4", "j", "j", "r")
            assert isinstance(scene.app.screen, ResetDialog)
            assert scene.app.screen.query_one("#topics", Input).value == "acts:2"

    with ExitStack() as stack:
        asyncio.run(play(stack))


def test_a_removed_member_is_seen_to_go_at_once(broker: LocalBroker, feed: ClusterFeed) -> None:
    kgctl = Kgctl(broker.bootstrap_servers)
    assert kgctl("topics", "create", "cuts", "--partitions", 1).exit_code == 0

    async def play(stack: ExitStack) -> None:
        only = stack.enter_context(closing(Joining(broker.bootstrap_servers, "cut", ["cuts"], "worker-a")))
        await asyncio.to_thread(only.join)
        await asyncio.to_thread(only.sync, {only.member_id: {"cuts": [0]}})
        # Looks come once in five minutes: what is seen after the dialog is what it asked for.
        async with opened(feed, "cut", interval_s=300.0) as scene:
            await scene.see("\u25cf Stable")
            await scene.press("2", "x")
            dialog = scene.app.screen
            assert isinstance(dialog, RemoveMemberDialog)
            await until(lambda: dialog.chosen is not None)
            dialog.query_one("#execute").focus()
            await scene.press("enter")
            await until(lambda: dialog.was_changed)
            await until(lambda: dialog.stage is Stage.CHANGED)
            await scene.press("escape")
            await scene.see("\u25cf Empty")
            await scene.press("1")
            await scene.see("requested by an admin")

    with ExitStack() as stack:
        asyncio.run(play(stack))
