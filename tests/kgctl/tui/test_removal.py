"""The dialog that removes a member: the one that the cursor is on, told beforehand, and looked for afterwards."""

from __future__ import annotations

import asyncio

from broker.local import LocalBroker
from kgctl.tui.feed import ClusterFeed
from kgctl.tui.screens.removal import RemoveMemberDialog
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, member_of
from tests.kgctl.tui.dialogs import cluster_feed, opened
from tests.kgctl.tui.test_rebalance import described, living


def test_the_member_that_is_asked_for_is_the_one_that_goes(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        second = sorted(member.consumer_id or "" for member in described(kgctl, group).members)[1]
        async with opened(RemoveMemberDialog(feed, group, second)) as scene:
            assert scene.text("message").startswith(f"Note: Removes {second}. It leaves and the group rebalances.")
            assert "joins again under a new id" in scene.text("message")
            assert second in scene.text("detail")
            await scene.press("enter")
            assert len(described(kgctl, group).members) == 2
            await scene.focus("execute")
            await scene.press("enter")
            assert scene.text("message").startswith("Done: removed. The group is ")
            (row,) = scene.rows()
            assert (row.consumer_id, row.status) == (second, "done")
            assert scene.button().disabled
            assert second not in {member.consumer_id for member in described(kgctl, group).members}
            await scene.press("ctrl+r")
            assert second not in {row.consumer_id for row in scene.rows()}
            await scene.press("escape")
            assert scene.app.answers == [True]

    with living(kgctl, group, topic, 2):
        asyncio.run(play())


def test_the_cursor_chooses_and_the_plan_says_whom(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        async with opened(RemoveMemberDialog(feed, group)) as scene:
            first, second = (row.consumer_id for row in scene.rows())
            assert f"--member {first} " in scene.text("command")
            assert [line.split()[-2] for line in scene.screen().splitlines() if "/127.0.0.1" in line][:2] == [
                "leaves",
                "stays",
            ]
            await scene.press("j")
            assert scene.text("message").startswith(f"Note: Removes {second}. ")
            await scene.press("y")
            assert scene.app.clipboard == (
                f"kgctl groups remove-members {group} --member {second} --bootstrap {feed.name} --execute"
            )
            await scene.press("up")
            assert scene.text("message").startswith(f"Note: Removes {first}. ")

    with living(kgctl, group, topic, 2):
        asyncio.run(play())


def test_a_static_member_goes_by_its_instance_id_with_a_reason(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        async with opened(RemoveMemberDialog(feed, group, instance="worker-1")) as scene:
            assert scene.text("message").startswith("Note: Removes worker-1. It leaves, by its instance id,")
            await scene.focus("reason")
            await scene.type("host is gone")
            assert "--instance worker-1 --reason 'host is gone'" in scene.text("command")
            assert await scene.pilot.click("#execute")
            await scene.settled()
            assert scene.text("message") == "Done: removed. The group is Empty with 0 members."

    with member_of(kgctl, group, {topic: [0]}, "worker-1"):
        asyncio.run(play())
    assert "host is gone" in kgctl("groups", "history", group).stdout


def test_a_member_that_has_left_is_said_to_have_and_its_removal_is_a_failed_row(
    kgctl: Kgctl, feed: ClusterFeed, topic: str
) -> None:
    group = fresh("g")

    async def play() -> None:
        with member_of(kgctl, group, {topic: [0]}) as member_id:
            async with opened(RemoveMemberDialog(feed, group, "long-gone")) as scene:
                said = f"Note: Member 'long-gone' is not in the group any more. Removes {member_id}. "
                assert scene.text("message").startswith(said)
                with kgctl.admin() as admin:
                    admin.remove_members(group, admin.plan_member_removal(group, everyone=True))
                await scene.focus("execute")
                await scene.press("enter")
                (row,) = scene.rows()
                assert row.consumer_id == member_id
                assert row.error is not None
                assert scene.text("message").startswith("Error: It was not removed: ")
                await scene.press("ctrl+r")
                assert scene.text("message") == "Note: The group has no active members."
                assert scene.button().disabled
                await scene.press("escape")
                assert scene.app.answers == [False]

    asyncio.run(play())


def test_read_only_lists_the_members_and_removes_none(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        async with opened(RemoveMemberDialog(feed, group, read_only=True)) as scene:
            assert len(scene.rows()) == 1
            assert str(scene.button().label) == "Remove this member: read-only"
            assert scene.button().disabled
            scene.dialog.execute()
            await scene.settled()
            assert "--read-only" in scene.text("message")

    with member_of(kgctl, group, {topic: [0]}):
        asyncio.run(play())
        assert len(described(kgctl, group).members) == 1


def test_a_group_or_a_broker_that_is_gone_is_one_sentence(feed: ClusterFeed) -> None:
    async def play(feed: ClusterFeed, said: str) -> None:
        async with opened(RemoveMemberDialog(feed, "no-such-group")) as scene:
            assert scene.text("message").startswith("Error: ")
            assert said in scene.text("message")
            assert "\n" not in scene.text("message")
            assert scene.button().disabled
            assert scene.button("copy").disabled

    asyncio.run(play(feed, "no-such-group"))
    with LocalBroker() as broker:
        gone = cluster_feed(broker.bootstrap_servers)
    asyncio.run(play(gone, gone.name))
    gone.close()
