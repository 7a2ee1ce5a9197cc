"""The actions of the dashboard, on our broker and on a real Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from textual.widgets import Checkbox

from kgctl.tui.dialogs.deletion import DeleteDialog
from kgctl.tui.dialogs.offset_deletion import DeleteOffsetsDialog
from kgctl.tui.dialogs.rebalance import RebalanceDialog
from kgctl.tui.dialogs.removal import RemoveMemberDialog
from kgctl.tui.dialogs.reset import ResetDialog
from kgctl.tui.dialogs.undo import UndoDialog
from kgctl.tui.feed.cluster import ClusterFeed
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.tui.dialogs import cluster_feed, opened
from tests.kgctl.tui.test_rebalance import described, living, trigger
from tests.kgctl.tui.test_reset import choose, consent, write


@pytest.fixture
def kgctl(cluster: Cluster) -> Kgctl:
    return Kgctl(cluster.bootstrap_servers)


@pytest.fixture
def feed(cluster: Cluster) -> Iterator[ClusterFeed]:
    found = cluster_feed(cluster.bootstrap_servers)
    yield found
    found.close()


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    name = fresh("t")
    assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    fill(kgctl, name, [8, 8])
    return name


def test_a_reset_commits_the_planned_offsets(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=5, p1=6)

    async def play() -> None:
        async with opened(ResetDialog(feed, group, topic=topic, partition=1)) as scene:
            await choose(scene, "earliest")
            assert [(row.partition, row.old_offset, row.new_offset) for row in scene.rows()] == [(1, 6, 0)]
            await consent(scene, group)
            assert [row.status for row in scene.rows()] == ["done"]

    asyncio.run(play())
    with kgctl.admin() as admin:
        (found,) = admin.describe_groups([group])
    assert {row.partition: row.current_offset for row in found.partitions} == {0: 5, 1: 0}


def test_a_rebalance_evicts_members_only_if_necessary(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play() -> None:
        async with opened(RebalanceDialog(feed, group)) as scene:
            before = {member.consumer_id for member in described(kgctl, group).members}
            must_evict = scene.dialog.query_one("#evict", Checkbox).display
            if must_evict:
                await scene.focus("evict")
                await scene.press("space")
            await trigger(scene)
            assert scene.text("message").startswith("Done: the group is Stable"), scene.text("message")
            after = {member.consumer_id for member in described(kgctl, group).members}
            assert (after == before) is not must_evict

    with living(kgctl, group, topic, 1):
        asyncio.run(play())


def test_a_member_is_removed(kgctl: Kgctl, feed: ClusterFeed, topic: str) -> None:
    group = fresh("g")

    async def play(member: str) -> None:
        async with opened(RemoveMemberDialog(feed, group, member_id=member)) as scene:
            await scene.focus("execute")
            await scene.press("enter")
            assert [row.status for row in scene.rows()] == ["done"], scene.text("message")

    with member_of(kgctl, group, {topic: [0]}) as member:
        asyncio.run(play(member))
        assert described(kgctl, group).members == ()


def test_marked_groups_are_deleted_and_undo_gives_their_offsets_back(
    kgctl: Kgctl, feed: ClusterFeed, topic: str
) -> None:
    first, second, busy = fresh("g"), fresh("g"), fresh("g")
    for name in (first, second):
        kgctl.commit(name, topic, p0=5, p1=6)

    async def play() -> None:
        async with opened(DeleteDialog(feed, [first, second, busy])) as scene:
            await consent(scene, "2")
            assert {row.group: row.status for row in scene.rows()} == {first: "done", second: "done", busy: "failed"}
        async with opened(UndoDialog(feed)) as scene:
            await scene.press("enter")
            await consent(scene, "2")
            assert {row.status for row in scene.rows()} == {"done"}, scene.text("message")
        async with opened(DeleteOffsetsDialog(feed, [first, second], topic)) as scene:
            await write(scene, "topics", ":0")
            await consent(scene, "2")
            assert scene.text("message") == "Done: 2 committed offsets deleted."

    with member_of(kgctl, busy, {topic: [0]}):
        asyncio.run(play())
    with kgctl.admin() as admin:
        found = admin.describe_groups([first, second])
    for group in found:
        assert {row.partition: row.current_offset for row in group.partitions if row.current_offset is not None} == {
            1: 6
        }
