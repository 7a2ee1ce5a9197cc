"""The rebalance dialog: the native request, eviction, and the outcome of both."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import DEVNULL, PIPE, Popen

import pytest
from textual.widgets import Checkbox, Input

from broker.local import LocalBroker
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.groups import GroupDescription
from kgctl.tui.dialogs.plan import Stage
from kgctl.tui.dialogs.rebalance import RebalanceDialog
from kgctl.tui.feed.cluster import ClusterFeed
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, member_of
from tests.kgctl.tui.dialogs import GatedFeed, OtherBrokerFeed, Scene, cluster_feed, opened
from tests.kgctl.tui.waiting import until


def described(kgctl: Kgctl, group: str) -> GroupDescription:
    with kgctl.admin() as admin:
        (found,) = admin.describe_groups([group], offsets=False)
    return found


@contextmanager
def living(kgctl: Kgctl, group: str, topic: str, count: int) -> Iterator[None]:
    """`count` consumer processes, which rejoin in every rebalance."""
    assert kgctl.bootstrap
    command = ["kgctl", "consume", topic, "--group", group, "--bootstrap", kgctl.bootstrap]
    programs = [
        Popen([sys.executable, "-m", *command], stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL) for _ in range(count)
    ]
    try:

        def have_joined() -> bool:
            found = described(kgctl, group)
            return found.state == "Stable" and len(found.members) == count

        asyncio.run(until(have_joined, 30.0))
        yield
    finally:
        for program in programs:
            program.terminate()
        for program in programs:
            program.communicate()


async def trigger(scene: Scene) -> None:
    await scene.focus("execute")
    await scene.press("enter")


def test_the_native_trigger_keeps_all_members_and_shows_the_generations(
    kgctl: Kgctl, feed: ClusterFeed, topic: str
) -> None:
    group = fresh("g")

    async def play() -> None:
        async with opened(RebalanceDialog(feed, group)) as scene:
            before = described(kgctl, group)
            assert scene.dialog.focused is not None
            assert scene.dialog.focused.id == "reason"
            assert "No member is evicted" in scene.text("message")
            assert not scene.dialog.query_one("#evict", Checkbox).display
            assert scene.text("totals") == f"2 members, current generation {before.generation}"
            await scene.press("enter")
            assert described(kgctl, group).generation == before.generation
            await trigger(scene)
            after = described(kgctl, group)
            assert before.generation is not None
            assert after.generation is not None
            assert after.generation > before.generation
            assert scene.text("message").startswith("Done: the group is Stable after ")
            assert f"in generation {after.generation} (before: {before.generation})." in scene.text("message")
            assert scene.text("totals") == "2 rejoined"
            assert {member.consumer_id for member in after.members} == {row.consumer_id for row in scene.rows()}
            await scene.press("escape")
            assert scene.app.answers == [True]

    with living(kgctl, group, topic, 2):
        asyncio.run(play())


def test_the_reason_is_recorded_in_the_history(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        async with opened(RebalanceDialog(feed, group)) as scene:
            await scene.type("bye, new hosts")
            await trigger(scene)
            assert scene.text("message").startswith("Done")

    with living(kgctl, group, topic, 1):
        asyncio.run(play())
        assert "bye, new hosts" in kgctl("groups", "history", group).stdout


def test_without_a_native_trigger_eviction_needs_explicit_consent(
    our_cluster: Cluster, kgctl: Kgctl, topic: str
) -> None:
    group = fresh("g")

    async def play() -> None:
        feed = OtherBrokerFeed(our_cluster.bootstrap_servers)
        async with opened(RebalanceDialog(feed, group)) as scene:
            before = {member.consumer_id for member in described(kgctl, group).members}
            assert "cannot trigger a rebalance without eviction" in scene.text("message")
            assert {row.consumer_id for row in scene.rows()} == before
            assert "will be evicted" in scene.screen()
            assert "recorded in the broker's log" in scene.dialog.query_one("#reason", Input).placeholder
            box = scene.dialog.query_one("#evict", Checkbox)
            assert box.display
            assert not box.value
            assert "[ ] Evict all members" in scene.screen()
            assert scene.button().disabled
            assert "--evict" in scene.text("command")
            scene.dialog.execute()
            assert scene.text("message") == "Note: Check the box to consent to the eviction."
            assert {member.consumer_id for member in described(kgctl, group).members} == before
            await scene.focus("evict")
            await scene.press("space")
            assert "[x] Evict all members" in scene.screen()
            assert str(scene.button().label) == "Evict all members"
            await trigger(scene)
            assert scene.text("message").startswith("Done: the group is Stable")
            assert not box.value
            after = {member.consumer_id for member in described(kgctl, group).members}
            assert not after & before
            assert {row.consumer_id for row in scene.rows() if row.status == "gone"} == before
        feed.close()

    with living(kgctl, group, topic, 1):
        asyncio.run(play())


@pytest.mark.parametrize("read_only", [False, True])
def test_without_members_or_with_read_only_the_button_is_disabled(
    kgctl: Kgctl, feed: ClusterFeed, topic: str, read_only: bool
) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=0)

    async def play() -> None:
        async with opened(RebalanceDialog(feed, group, read_only=read_only)) as scene:
            assert scene.text("message") == f"Error: Consumer group '{group}' has no active members to rebalance."
            assert scene.button().disabled
            assert ("read-only" in str(scene.button().label)) == read_only
        with member_of(kgctl, group, {topic: [0]}):
            async with opened(RebalanceDialog(feed, group, read_only=read_only)) as scene:
                before = described(kgctl, group).generation
                assert scene.button().disabled == read_only
                if read_only:
                    scene.dialog.execute()
                    await scene.settled()
                    assert "Read-only: " in scene.text("message")
                await scene.press("escape")
                assert scene.app.answers == [False]
                assert described(kgctl, group).generation == before

    asyncio.run(play())


def test_a_plan_is_refused_if_its_members_have_left(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        with member_of(kgctl, group, {topic: [0]}):
            app = opened(RebalanceDialog(feed, group))
            scene = await app.__aenter__()
        await trigger(scene)
        assert "has no active members to rebalance. Nothing was changed." in scene.text("message")
        assert not scene.dialog.was_changed
        await app.__aexit__(None, None, None)

    asyncio.run(play())


def test_the_dialog_shows_the_elapsed_time_and_escape_waits(our_cluster: Cluster, kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        feed = GatedFeed(our_cluster.bootstrap_servers)
        async with opened(RebalanceDialog(feed, group)) as scene:
            feed.gate.clear()
            await scene.focus("execute")
            await scene.pilot.press("enter")
            await until(lambda: scene.dialog.stage is Stage.CHANGING)
            assert scene.text("message") == "Waiting for the group to become Stable: 0 s"
            await scene.pilot.press("escape")
            await scene.pilot.pause()
            assert scene.app.screen is scene.dialog
            feed.gate.set()
            await scene.settled()
            assert scene.text("message").startswith("Done")
        feed.close()

    with living(kgctl, group, topic, 1):
        asyncio.run(play())


def test_a_rebalance_that_times_out_was_triggered_nevertheless(our_cluster: Cluster, kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        feed = ClusterFeed(ConnectionSettings(kgctl.admin().cluster.bootstrap, timeout=1.0))
        with member_of(kgctl, group, {topic: [0]}):
            async with opened(RebalanceDialog(feed, group)) as scene:
                await trigger(scene)
                message = scene.text("message")
                assert message.startswith("Error: The rebalance was triggered. ")
                # The time ends between two questions to the broker, or while one of them is open.
                assert "gave up after 1 s: " in message or "no answer in time" in message
                await scene.press("escape")
                assert scene.app.answers == [True]
        feed.close()

    asyncio.run(play())


def test_an_unreachable_broker_is_one_sentence() -> None:
    async def play(feed: ClusterFeed) -> None:
        async with opened(RebalanceDialog(feed, "g")) as scene:
            assert scene.text("message").startswith("Error: ")
            assert feed.cluster.name in scene.text("message")
            assert "\n" not in scene.text("message")
            assert scene.button().disabled

    with LocalBroker() as broker:
        feed = cluster_feed(broker.bootstrap_servers)
    asyncio.run(play(feed))
    feed.close()


def test_a_key_copies_the_command_and_a_click_closes(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        async with opened(RebalanceDialog(feed, group)) as scene:
            await scene.press("down", "y")
            assert (
                scene.app.clipboard
                == f"kgctl groups rebalance {group} --wait --bootstrap {feed.cluster.name} --execute"
            )
            await scene.press("ctrl+r")
            assert len(scene.rows()) == 1
            assert await scene.pilot.click("#close")
            await scene.settled()
            assert scene.app.answers == [False]

    with member_of(kgctl, group, {topic: [0]}):
        asyncio.run(play())
