"""The removal dialog: the selected member, the announcement, and the outcome."""

from __future__ import annotations

import asyncio

from broker.local import LocalBroker
from kgctl.model.changes import MemberChange
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.feed.cluster import ClusterFeed
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, member_of
from tests.kgctl.tui.dialogs import AnswersFeed, cluster_feed, opened
from tests.kgctl.tui.test_rebalance import described, living


def test_the_requested_member_is_removed(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        second = sorted(member.consumer_id or "" for member in described(kgctl, group).members)[1]
        async with opened(RemoveMemberDialog(feed, group, second)) as scene:
            assert scene.text("message").startswith(f"Note: This removes {second}. The group rebalances.")
            assert "rejoins with a new member id" in scene.text("message")
            assert second in scene.text("detail")
            await scene.press("down", "enter")
            assert len(described(kgctl, group).members) == 2
            await scene.focus("execute")
            await scene.press("enter")
            assert scene.text("message").startswith("Done: the member was removed. The group is ")
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


def test_marks_select_the_members_to_remove_and_none_is_marked_at_the_start() -> None:
    rows = [MemberChange("g", f"worker-{number}", None, f"/10.0.0.{number}", "worker") for number in (1, 2)]

    async def play() -> None:
        async with opened(RemoveMemberDialog(AnswersFeed(rows), "g")) as scene:
            assert scene.text("message") == "Mark the members to remove: space marks one, a all."
            assert scene.text("command") == ""
            assert scene.button().disabled
            await scene.press("down", "space", "k")
            assert "--member worker-1 " in scene.text("command")
            assert [line.split()[-2] for line in scene.screen().splitlines() if "/10.0.0" in line][:2] == [
                "leaves",
                "stays",
            ]
            await scene.press("space", "space")
            assert scene.text("message").startswith("Note: This removes worker-2. ")
            await scene.press("y")
            assert scene.app.clipboard == (
                "kgctl groups remove-members g --member worker-2 --bootstrap 127.0.0.1:9092 --execute"
            )
            await scene.press("a")
            assert scene.text("message").startswith("Note: This removes 2 members. ")
            assert " remove-members g --all --bootstrap" in scene.text("command")

    asyncio.run(play())


def test_a_static_member_is_removed_by_its_instance_id_with_a_reason(
    kgctl: Kgctl, feed: ClusterFeed, topic: str
) -> None:
    group = fresh("g")

    async def play() -> None:
        async with opened(RemoveMemberDialog(feed, group, instance="worker-1")) as scene:
            assert scene.text("message").startswith("Note: This removes worker-1. The group rebalances.")
            await scene.focus("reason")
            await scene.type("host is gone")
            assert "--instance worker-1 --reason 'host is gone'" in scene.text("command")
            assert await scene.pilot.click("#execute")
            await scene.settled()
            assert scene.text("message") == "Done: the member was removed. The group is Empty with 0 members."

    with member_of(kgctl, group, {topic: [0]}, "worker-1"):
        asyncio.run(play())
    assert "host is gone" in kgctl("groups", "history", group).stdout


def test_removing_a_member_that_has_left_fails(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        with member_of(kgctl, group, {topic: [0]}) as member_id:
            async with opened(RemoveMemberDialog(feed, group, "long-gone")) as scene:
                assert scene.text("message") == (
                    "Note: Member 'long-gone' is no longer in the group. "
                    "Mark the members to remove: space marks one, a all."
                )
                assert scene.button().disabled
                await scene.press("down", "space")
                with kgctl.admin() as admin:
                    admin.remove_members(group, admin.plan_member_removal(group, everyone=True))
                await scene.focus("execute")
                await scene.press("enter")
                (row,) = scene.rows()
                assert row.consumer_id == member_id
                assert row.error is not None
                assert scene.text("message").startswith("Error: The member was not removed: ")
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
            assert str(scene.button().label) == "Remove members: read-only"
            assert scene.button().disabled
            scene.dialog.execute()
            await scene.settled()
            assert scene.text("message").startswith("Note: Read-only: ")

    with member_of(kgctl, group, {topic: [0]}):
        asyncio.run(play())
        assert len(described(kgctl, group).members) == 1


def test_a_missing_group_and_an_unreachable_broker_are_one_sentence(feed: ClusterFeed) -> None:
    async def play(feed: ClusterFeed, words: str) -> None:
        async with opened(RemoveMemberDialog(feed, "no-such-group")) as scene:
            assert scene.text("message").startswith("Error: ")
            assert words in scene.text("message")
            assert "\n" not in scene.text("message")
            assert scene.button().disabled
            assert scene.button("copy").disabled

    asyncio.run(play(feed, "no-such-group"))
    with LocalBroker() as broker:
        gone = cluster_feed(broker.bootstrap_servers)
    asyncio.run(play(gone, gone.cluster.name))
    gone.close()
