"""The screen of a group on a running broker: a rebalance step by step, and actions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from textual.widgets import Input

from broker.local import LocalBroker
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.tui.dialogs.plan import Stage
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.feed.cluster import ClusterFeed
from tests.harness.commandline import Kgctl, fill
from tests.kgctl.tui.group_scene import MIDDLE, opened
from tests.kgctl.tui.joining import Joining
from tests.kgctl.tui.waiting import until


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as running:
        yield running


@pytest.fixture
def feed(broker: LocalBroker) -> Iterator[ClusterFeed]:
    feed = ClusterFeed(ConnectionSettings(parse(broker.bootstrap_servers), timeout=10))
    yield feed
    feed.close()


def test_the_screen_follows_a_group_through_every_state(broker: LocalBroker, feed: ClusterFeed) -> None:
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
            assert "generation 1" in scene.text
            assert "worker-a \u2605" in scene.text

            joining = asyncio.create_task(asyncio.to_thread(second.join))
            await scene.see("\u25cf Preparing")
            await scene.see("1/2  waits for worker-a")
            assert "rebalance timeout in " in scene.text
            assert [item.phase for item in scene.screen.members.table.rows] == ["not rejoined yet", "joined"]
            await scene.see("Under way \u00b7 ")

            await asyncio.gather(asyncio.to_thread(first.join), joining)
            await scene.see("\u25cf Completing")
            await scene.see("0/2  leader worker-a assigns partitions")
            syncing = asyncio.create_task(asyncio.to_thread(second.sync))
            await scene.see("\u2713 worker-b")
            owned = {first.member_id: {"walk": [0]}, second.member_id: {"walk": [1]}}
            await asyncio.to_thread(first.sync, owned)
            await syncing

            await scene.see("\u25cf Stable")
            await scene.see("Gen 2 \u00b7 worker-b joined")
            newest = scene.screen.rebalances.table.rows[0].rebalance
            assert (newest.generation, newest.joined, newest.partitions_moved) == (2, (second.member_id,), 1)
            assert "1 moves" in scene.text

            await asyncio.to_thread(second.leave)
            await scene.see("worker-b left")
            await asyncio.to_thread(first.leave)
            await scene.see("\u25cf Empty")

    with ExitStack() as stack:
        asyncio.run(play(stack))


def test_a_missing_group_is_dead_until_it_exists(broker: LocalBroker, feed: ClusterFeed) -> None:
    kgctl = Kgctl(broker.bootstrap_servers)
    assert kgctl("topics", "create", "late", "--partitions", 1).exit_code == 0
    fill(kgctl, "late", [5])

    async def play() -> None:
        async with opened(feed, "later", interval_s=0.5) as scene:
            await scene.see("\u25cf Dead")
            assert "It will appear here once it exists." in scene.text
            await asyncio.to_thread(kgctl.commit, "later", "late", p0=3)
            await scene.see("\u25cf Empty")
            await scene.see("late")

    asyncio.run(play())


def test_a_dialog_starts_with_the_selected_member_or_partition(broker: LocalBroker, feed: ClusterFeed) -> None:
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
            await scene.see("worker-b")
            await asyncio.gather(asyncio.to_thread(first.join), joining)
            owned = {first.member_id: {"acts": [0, 1]}, second.member_id: {"acts": [2]}}
            await asyncio.gather(asyncio.to_thread(first.sync, owned), asyncio.to_thread(second.sync))
            await scene.see("\u25cf Stable")
            await scene.press("1", "j", "x")
            dialog = scene.app.screen
            assert isinstance(dialog, RemoveMemberDialog)
            await until(lambda: bool(dialog.selected))
            wanted = scene.screen.members.cursor_member
            assert wanted is not None
            assert len(dialog.selected) == 1
            assert dialog.selected[0].consumer_id == wanted.consumer_id == second.member_id
            await scene.press("escape", "2", "end", "r")
            assert isinstance(scene.app.screen, ResetDialog)
            assert scene.app.screen.query_one("#topics", Input).value == "acts:2"

    with ExitStack() as stack:
        asyncio.run(play(stack))


def test_the_screen_refreshes_at_once_after_a_removal(broker: LocalBroker, feed: ClusterFeed) -> None:
    kgctl = Kgctl(broker.bootstrap_servers)
    assert kgctl("topics", "create", "cuts", "--partitions", 1).exit_code == 0

    async def play(stack: ExitStack) -> None:
        only = stack.enter_context(closing(Joining(broker.bootstrap_servers, "cut", ["cuts"], "worker-a")))
        await asyncio.to_thread(only.join)
        await asyncio.to_thread(only.sync, {only.member_id: {"cuts": [0]}})
        # The interval is five minutes, so only a refresh after the dialog can show the removal.
        async with opened(feed, "cut", interval_s=300.0) as scene:
            await scene.see("\u25cf Stable")
            await scene.press("x")
            dialog = scene.app.screen
            assert isinstance(dialog, RemoveMemberDialog)
            await until(lambda: bool(dialog.selected))
            dialog.READING_S = 0.0
            dialog.query_one("#execute").focus()
            await scene.press("enter")
            await until(lambda: dialog.was_changed)
            await until(lambda: dialog.stage is Stage.CHANGED)
            await scene.press("escape")
            await scene.see("\u25cf Empty")
            await scene.see("requested by an admin")

    with ExitStack() as stack:
        asyncio.run(play(stack))
