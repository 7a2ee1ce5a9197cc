"""The background: it judges all groups whatever screen is open."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar, cast

from kgctl.model.health import Health
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui import garbage
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.feed.groups import AllGroups, OneGroup
from kgctl.tui.feed.read import Read
from kgctl.tui.observer import in_slices
from kgctl.tui.once import frame
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.watch.cluster import AT_ONCE, ClusterWatch
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, member_of
from tests.kgctl.tui import group_snapshots, snapshots
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until

T = TypeVar("T")
P0 = TopicPartition("orders", 0)


def feed_of(found: Sequence[Snapshot]) -> PreparedFeed:
    return PreparedFeed(found, {name: [group_snapshots.snapshot()] for name in found[0].groups})


def test_a_verdict_forms_while_another_screen_is_open() -> None:
    feed = feed_of(snapshots.watched_for_a_while())

    async def run() -> None:
        app = KgctlApp(feed, interval_s=300, clock=lambda: snapshots.NOW_S)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(app.ready.is_set)
            app.open_group("tracking")
            await until(lambda: isinstance(app.screen, GroupScreen) and app.screen.is_mounted)
            await pilot.press("question_mark")
            for number in range(1, 4):
                app.background.polling.now()
                await until(lambda number=number: app.background.polling.answers > number)
            assert app.cluster is not None
            row = app.cluster.row("tracking")
            assert row is not None
            assert row.health is Health.LAGGING
            await pilot.press("escape", "escape")
            await until(lambda: isinstance(app.screen, GroupsScreen))
            await pilot.pause()
            assert {one.group: one for one in app.screen.all}["tracking"] == row
            assert feed.asked(AllGroups()) >= 4

    asyncio.run(run())


def test_a_screen_that_opens_first_does_not_keep_the_background_from_watching() -> None:
    found = [snapshots.snapshot(snapshots.every_state())]

    async def run() -> None:
        app = KgctlApp(feed_of(found), group="billing", clock=lambda: snapshots.NOW_S)
        async with app.run_test() as pilot:
            await until(app.ready.is_set)
            await until(lambda: app.cluster is not None)
            assert app.cluster is not None
            assert [row.group for row in app.cluster.rows] == sorted(found[0].groups)
            await pilot.press("escape")
            await until(lambda: isinstance(app.screen, GroupsScreen))
            await pilot.pause()
            assert len(app.screen.all) == len(found[0].groups)

    asyncio.run(run())


def test_other_tasks_run_while_many_groups_are_judged() -> None:
    async def run() -> None:
        judging = asyncio.ensure_future(in_slices(ClusterWatch().adding(snapshots.snapshot(snapshots.many(3_000)))))
        turns = 0
        while not judging.done():
            await asyncio.sleep(0)
            turns += 1
        assert len(judging.result().rows) == 3_000
        assert turns >= 3_000 // AT_ONCE

    asyncio.run(run())


def test_many_groups_make_no_full_collections_of_garbage_while_keys_come() -> None:
    found = snapshots.snapshot(snapshots.many(garbage.MANY))
    later = [replace(found, at_s=found.at_s + number) for number in range(5)]
    now_s, usual = [0.0], gc.get_threshold()

    def full() -> int:
        return int(gc.get_stats()[2]["collections"])

    async def run() -> None:
        app = KgctlApp(PreparedFeed([found, *later]), interval_s=1e9, clock=lambda: now_s[0])
        async with app.run_test() as pilot:

            async def answer() -> None:
                answers = app.background.polling.answers
                app.background.polling.now()
                await until(lambda: app.background.polling.answers > answers)

            await until(app.ready.is_set)
            before = full()
            now_s[0] = garbage.DUE_S
            await pilot.press("j")
            await answer()
            assert full() == before
            now_s[0] += garbage.QUIET_S
            await answer()
            assert full() == before + 1
            await answer()
            assert full() == before + 1

    asyncio.run(run())
    assert (gc.get_threshold(), gc.get_freeze_count()) == (usual, 0)


def test_what_happens_to_a_real_group_is_an_event_while_another_group_is_open(
    feed: ClusterFeed, kgctl: Kgctl, topic: str
) -> None:
    other, group = fresh("other"), fresh("app")
    kgctl.commit(other, topic, p0=0)

    async def run() -> None:
        app = KgctlApp(feed, interval_s=0.5, group=other)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(app.ready.is_set)
            await until(lambda: app.cluster is not None)
            with member_of(kgctl, group, {topic: [0, 1]}):
                await until(lambda: app.cluster.row(group) is not None, 20)
                assert isinstance(app.screen, GroupScreen)
                assert app.cluster.row(group).members == 1
            await until(lambda: app.cluster.row(group).members == 0, 20)
            texts = [one.text for one in app.cluster.events if one.group == group]
            assert any(text.startswith("rebalanced in ") and "joined" in text for text in texts)
            assert any(text.startswith("empty: ") for text in texts)
            assert "created" in texts
            await pilot.press("escape")

    asyncio.run(run())


class SlowFeed(PreparedFeed):
    """It never answers about all groups. The commit of the group is old; only where recent records begin proves that this is a fault."""

    async def read(self, read: Read[T]) -> T:
        if not isinstance(read, OneGroup):
            return await super().read(read)
        self._asked[read] += 1
        stuck = snapshots.group("stuck", lags=(900,), members=1)
        now_ms = snapshots.NOW_MS
        stuck = replace(stuck, clock_ms=now_ms, committed_at={P0: now_ms - 600_000})
        if read.recent_s is not None:
            stuck = replace(stuck, recent_from={P0: 1_800})
        later_s = self.asked(read)
        return cast(T, GroupSnapshot(snapshots.NOW_S + later_s, now_ms + 1000 * later_s, stuck, ()))


def test_the_first_snapshots_of_a_group_prove_what_is_old_before_all_groups_are_read() -> None:
    app = KgctlApp(SlowFeed(), interval_s=0.1, group="stuck")
    drawn = frame(app, (120, 40), snapshots=3, colors=False)
    assert drawn is not None
    assert "STALLED" in drawn.text.splitlines()[0]
