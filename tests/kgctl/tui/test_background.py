"""The background: it judges all groups whatever screen is open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kgctl.model.health import Health
from kgctl.model.watched import Snapshot
from kgctl.tui.app import KgctlApp
from kgctl.tui.feed.groups import AllGroups
from kgctl.tui.observer import in_slices
from kgctl.tui.screens.group import GroupScreen
from kgctl.tui.screens.groups import GroupsScreen
from kgctl.watch.cluster import AT_ONCE, ClusterWatch
from tests.kgctl.tui import group_snapshots, snapshots
from tests.kgctl.tui.prepared import PreparedFeed
from tests.kgctl.tui.waiting import until


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
